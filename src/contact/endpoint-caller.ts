import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { EndpointTarget, EndpointHealthStore } from '../database/endpoint-health-store.js';
import { AttemptConfigError, buildSignedRequest } from '../delivery/attempt-request.js';
import type { OutboundAnswer } from '../delivery/delivery-client.js';
import { consentContext, type OpenedEndpoint, openEndpoint, type SealedTexts } from '../delivery/open-endpoint.js';
import { isUnsent, type OutboundRequest } from '../delivery/outbound.js';
import { userAgent } from '../delivery/user-agent.js';
import { idPrefixes } from '../domain/ids.js';
import { type ProfileName, profiles, type VerificationWay } from '../domain/profiles.js';
import { verificationOffsetMs } from '../domain/verification.js';
import { newId } from '../security/new-id.js';
import { allowedRate, answersChallenge, grantsOrigin } from './verification-answers.js';

/** A call to an endpoint that is no delivery: what came of it. */
export interface CallReport {
  readonly passed: boolean;
  readonly way: VerificationWay | 'test';
  /** Null: nothing was sent, and nobody is to blame for it but this process. */
  readonly sent: boolean;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly durationMs: number;
  readonly body: Buffer;
  /** Requests a minute that the endpoint allows, from a handshake. */
  readonly allowedRatePerMinute: number | null;
}

export interface EndpointCallerOptions {
  readonly store: EndpointHealthStore;
  readonly sender: { send(request: OutboundRequest): Promise<OutboundAnswer> };
  readonly secrets: SealedTexts & { seal(plain: string, context: string): string };
  readonly settings: {
    readonly publicHost: string;
    readonly publicUrl: string | null;
    readonly maxInFlight: number;
  };
  readonly now: () => number;
}

/** What a handshake asks for where the endpoint's owner set no limit: the field has to be a number. */
const requestedRatePerMinute = 6_000;

/** Verifications, pings and test sends: through the same door, with the same envelope and signature as deliveries. */
export class EndpointCaller {
  constructor(private readonly options: EndpointCallerOptions) {}

  /** One try to verify the endpoint, by its way or, in order, by its profile's; null where none is due. */
  async verify(endpointId: string): Promise<CallReport | null> {
    const { store } = this.options;
    const target = await store.target(endpointId);
    if (!target || !target.verificationDue) return null;
    const report = await this.tryToVerify(target);
    if (!report.sent) return report;
    await store.recordVerification({
      endpointId,
      url: target.call.url,
      tries: target.tries,
      report,
      nextOffsetMs: verificationOffsetMs(target.tries + 1),
    });
    return report;
  }

  /** An endpoint's periodic ping; null where none is due. */
  async pingPeriodically(endpointId: string): Promise<CallReport | null> {
    const { store } = this.options;
    const target = await store.target(endpointId);
    if (!target || !target.pingDue) return null;
    const report = await this.call(target, 'ping');
    if (report.sent) await store.recordPing(endpointId, report);
    return report;
  }

  /** Does a disabled endpoint answer again? Null where it isn't to be asked now. */
  async probe(endpointId: string): Promise<CallReport | null> {
    const { store } = this.options;
    const target = await store.target(endpointId);
    if (!target || !target.probeDue) return null;
    const report = await this.call(target, 'ping');
    if (report.sent) await store.recordProbe(endpointId, report);
    return report;
  }

  /** A ping at somebody's wish: it counts for nothing. Null where there is no such endpoint. */
  async ping(endpointId: string): Promise<CallReport | null> {
    const target = await this.options.store.target(endpointId);
    return target && this.call(target, 'ping');
  }

  /** A test send: signed as a delivery, but it is none, and counts for nothing. `data` is JSON text. */
  async test(endpointId: string, { type, data }: { type: string; data: string }): Promise<CallReport | null> {
    const target = await this.options.store.target(endpointId);
    return target && this.post(target, 'test', type, data, isSuccess);
  }

  /** Somebody who was asked in a handshake agrees later, by the address that we gave. */
  async consent(endpointId: string, token: string, allowedRateHeader?: string): Promise<boolean> {
    const { store, secrets } = this.options;
    const sealed = await store.consentToken(endpointId);
    if (sealed === null) return false;
    const expected = Buffer.from(secrets.open(sealed, consentContext(endpointId)));
    const given = Buffer.from(token);
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) return false;
    return store.recordConsent(endpointId, sealed, allowedRate(allowedRateHeader));
  }

  private async tryToVerify(target: EndpointTarget): Promise<CallReport> {
    const profile = Object.hasOwn(profiles, target.call.profile)
      ? profiles[target.call.profile as ProfileName]
      : profiles.default;
    const ways = target.verification === null ? profile.verification : [target.verification];
    let report: CallReport | null = null;
    for (const way of ways) {
      report = await this.call(target, way);
      if (report.passed || !report.sent) break;
    }
    if (!report) throw new Error('a profile has no way of verification');
    return report;
  }

  private call(target: EndpointTarget, way: VerificationWay): Promise<CallReport> {
    switch (way) {
      case 'challenge': {
        const challenge = randomBytes(32).toString('base64url');
        return this.post(
          target,
          'challenge',
          'webhook.verification',
          JSON.stringify({ challenge }),
          (answer) => isSuccess(answer) && answersChallenge(answer.responseBody, challenge),
        );
      }
      case 'ping':
        return this.post(target, 'ping', 'webhook.ping', '{}', isSuccess);
      case 'handshake':
        return this.handshake(target);
    }
  }

  private post(
    target: EndpointTarget,
    way: CallReport['way'],
    type: string,
    data: string,
    passes: (answer: OutboundAnswer) => boolean,
  ): Promise<CallReport> {
    const nowMs = this.options.now();
    return this.send(target, way, passes, (endpoint) =>
      buildSignedRequest({
        messageId: newId(idPrefixes.message),
        tenantId: target.tenantId,
        type,
        data,
        createdAt: new Date(nowMs).toISOString(),
        endpoint,
        secrets: endpoint.secrets,
        nowMs,
      }),
    );
  }

  /** CloudEvents' abuse protection: nothing is posted to who hasn't said that it wants to be posted to. */
  private async handshake(target: EndpointTarget): Promise<CallReport> {
    const { publicHost } = this.options.settings;
    const callback = await this.callback(target);
    return this.send(
      target,
      'handshake',
      (answer) =>
        (answer.statusCode === 200 || answer.statusCode === 204) && grantsOrigin(answer.responseHeaders, publicHost),
      ({ url, headers, authorization: { headers: credentials, ...authorization }, timeoutMs }) => ({
        ...authorization,
        method: 'OPTIONS',
        url,
        headers: {
          ...headers,
          ...credentials,
          'User-Agent': userAgent,
          'WebHook-Request-Origin': publicHost,
          'WebHook-Request-Rate': String((target.rateLimitPerSecond ?? requestedRatePerMinute / 60) * 60),
          ...(callback === null ? {} : { 'WebHook-Request-Callback': callback }),
        },
        body: null,
        timeoutMs,
      }),
    );
  }

  /** Where to agree later; null where consumers can't reach this API. The address stays the same through all tries. */
  private async callback({ endpointId }: EndpointTarget): Promise<string | null> {
    const { store, secrets, settings } = this.options;
    if (settings.publicUrl === null) return null;
    const fresh = secrets.seal(randomBytes(24).toString('base64url'), consentContext(endpointId));
    const token = secrets.open(await store.keepConsentToken(endpointId, fresh), consentContext(endpointId));
    return `${settings.publicUrl}/v1/webhooks/subscriptions/${endpointId}/consent/${token}`;
  }

  private async send(
    target: EndpointTarget,
    way: CallReport['way'],
    passes: (answer: OutboundAnswer) => boolean,
    build: (endpoint: OpenedEndpoint) => OutboundRequest,
  ): Promise<CallReport> {
    const { sender, secrets, settings } = this.options;
    let request: OutboundRequest;
    try {
      request = build(openEndpoint(target.endpointId, target.call, secrets, null));
    } catch (error) {
      const why = error instanceof AttemptConfigError ? error.message : 'the endpoint’s settings can not be used';
      return report(way, false, { errorCode: 'config_invalid', errorMessage: why });
    }
    // Apart from the deliveries': a check must get through where they fill every slot.
    const answer = await sender.send({
      ...request,
      slot: { key: `${target.endpointId}/calls`, max: target.call.maxInFlight ?? settings.maxInFlight },
    });
    if (isUnsent(answer)) return { ...report(way, false, answer), sent: false };
    const passed = passes(answer);
    const silent = passed || answer.errorCode !== null;
    return {
      ...report(way, passed, answer),
      ...(silent ? {} : { errorCode: 'not_confirmed', errorMessage: notConfirmed[way] }),
      allowedRatePerMinute:
        way === 'handshake' && passed ? allowedRate(headerOf(answer, 'webhook-allowed-rate')) : null,
    };
  }
}

const notConfirmed: Readonly<Record<CallReport['way'], string>> = {
  challenge: 'the answer is not the challenge: answer with it as text, or as JSON {"challenge": "…"}',
  handshake: 'the answer does not allow it: answer 200 or 204 with WebHook-Allowed-Origin',
  ping: 'the answer is no 2xx',
  test: 'the answer is no 2xx',
};

function isSuccess({ statusCode }: OutboundAnswer): boolean {
  return statusCode !== null && statusCode >= 200 && statusCode <= 299;
}

function headerOf({ responseHeaders }: OutboundAnswer, name: string): string | undefined {
  return responseHeaders.find(([given]) => given.toLowerCase() === name)?.[1];
}

function report(way: CallReport['way'], passed: boolean, answer: Partial<OutboundAnswer>): CallReport {
  return {
    way,
    passed,
    sent: true,
    statusCode: answer.statusCode ?? null,
    errorCode: answer.errorCode ?? null,
    errorMessage: answer.errorMessage ?? null,
    durationMs: answer.durationMs ?? 0,
    body: answer.responseBody ?? Buffer.alloc(0),
    allowedRatePerMinute: null,
  };
}
