import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAttemptRequest, buildSignedRequest } from '../../../src/delivery/attempt-request.js';
import type { OutboundRequest } from '../../../src/delivery/outbound.js';
import { signatureHeaders } from '../../../src/delivery/signature.js';
import { thinData } from '../../../src/domain/envelope.js';
import { profiles, type ProfileName, type SignatureName } from '../../../src/domain/profiles.js';
import { generateSecret } from '../../../src/security/signing-secret.js';
import { generateDeliveries, seed, type Delivery } from './messages.js';
import { ask, closeClient, forEach, sha256, urlOf, type Receiver } from './receiver.js';
import { Tally } from './tally.js';

export interface Conformance {
  readonly profile: ProfileName;
  /** Another signature than the profile's; `known` is what the consumer has of a secret. */
  readonly signing?: { readonly name: SignatureName; readonly make: () => { secret: string; known: string } };
  /** Each is started with the secrets, and told by a request's path which of them it knows. */
  readonly receivers: readonly ((secrets: readonly string[]) => Promise<Receiver>)[];
  readonly verifiers: readonly string[];
  /** What the verifiers say to each forgery. */
  readonly forgeries: readonly Forgery[];
  /** Reads what the verifiers of the first receiver accepted. */
  readonly reader?: {
    readonly name: string;
    /** Compares what was read with what was published. */
    readonly look: (event: unknown, delivery: Delivery) => void;
    /** Messages that are well signed and malformed. */
    readonly malformed: readonly { readonly name: string; readonly change: Change }[];
  };
}

type Change = (request: OutboundRequest) => OutboundRequest;

export interface Forgery {
  readonly name: string;
  /** How long before the attempt it was signed. */
  readonly ageMs?: number;
  readonly unknownSecret?: true;
  readonly change?: Change;
  readonly refusal: RegExp;
}

/** Of each half: with one secret, and during a rotation. */
const bodies = 2_500;
const forgedBodies = 50;
const maxLive = 5;

const shared = () => {
  const secret = generateSecret();
  return { secret, known: secret };
};

export function describeConformance({ profile, signing, receivers, verifiers, forgeries, reader }: Conformance): void {
  const { envelope, timeoutMs } = profiles[profile];
  const { name: signature, make } = signing ?? { name: profiles[profile].signature, make: shared };
  const keys = Array.from({ length: maxLive + 1 }, make);
  const live = keys.slice(0, maxLive).map(({ secret }) => secret);
  const title = signing ? `${profile} profile, signed by ${signing.name}` : `${profile} profile`;
  const unknown = maxLive;
  const tally = new Tally();
  const acceptedBy = reader ? [...verifiers, reader.name] : verifiers;
  const running: Receiver[] = [];

  /** The secrets are those from `newest` to `oldest`, by their places in `live`. */
  const build = (delivery: Delivery, url: string, [newest, oldest]: Span, thin = false, nowMs = Date.now()) =>
    buildAttemptRequest({
      delivery,
      endpoint: { url, envelope, signature, payload: thin ? 'thin' : 'full', headers: {}, timeoutMs },
      secrets: live.slice(newest, oldest + 1),
      attemptNumber: 1,
      nowMs,
    });

  const sign = (request: OutboundRequest, secrets: readonly string[]): OutboundRequest => {
    const messageId = request.headers['Webhook-Id'] ?? '';
    const body = request.body ?? Buffer.alloc(0);
    const message = { messageId, body, secrets, unixSeconds: Math.floor(Date.now() / 1_000) };
    return { ...request, headers: { ...request.headers, ...signatureHeaders(signature, message) } };
  };

  const deliver = async (delivery: Delivery, span: Span, known: number, thin = false) => {
    for (const receiver of running) {
      const request = build(delivery, urlOf(receiver, known), span, thin);
      const sent = request.body ?? Buffer.alloc(0);
      const data = thin ? thinData(delivery.eventId) : delivery.data;
      if (!sent.toString('utf8').endsWith(`,"data":${data}}`)) throw new Error(`not as published: ${data}`);
      const answer = await ask(request);
      tally.count(answer.refusals);
      if (answer.status !== 200 || answer.sha256 !== sha256(sent)) {
        throw new Error(`${JSON.stringify(answer)} to ${JSON.stringify(delivery)} (seed ${seed})`);
      }
      if (answer.event !== undefined) reader?.look(answer.event, { ...delivery, data });
    }
  };

  describe(`the ${title}`, () => {
    beforeAll(async () => {
      const known = keys.map((key) => key.known);
      for (const start of receivers) running.push(await start(known));
    });

    afterAll(async () => {
      await closeClient();
      await Promise.all(running.map((receiver) => receiver.stop()));
      process.stdout.write(`\n${title}, seed ${seed}:\n${tally.toString()}\n\n`);
    });

    it('is accepted with one secret, whatever was published', async () => {
      await forEach(generateDeliveries(bodies, 1), (delivery, index) => {
        const known = index % maxLive;
        return deliver(delivery, [known, known], known, index % 10 === 0);
      });
      for (const name of acceptedBy) expect(tally.of(name).accepted).toBe(bodies);
    });

    it('is accepted during a rotation by who knows only the oldest secret, then only the newest', async () => {
      await forEach(generateDeliveries(bodies, 2), async (delivery, index) => {
        const count = 2 + (index % (maxLive - 1));
        const newest = Math.floor(index / (maxLive - 1)) % (maxLive - count + 1);
        const span: Span = [newest, newest + count - 1];
        await deliver(delivery, span, span[1]);
        await deliver(delivery, span, span[0]);
      });
      for (const name of acceptedBy) expect(tally.of(name).accepted).toBe(3 * bodies);
    });

    it.each([
      ['webhook.verification', '{"challenge":"abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE"}'],
      ['webhook.ping', '{}'],
    ])('is accepted in what is no delivery: %s', async (type, data) => {
      for (const receiver of running) {
        const { status, refusals } = await ask(
          buildSignedRequest({
            messageId: 'msg_01KC0000000000000000000000',
            tenantId: 'default',
            type,
            data,
            createdAt: new Date().toISOString(),
            endpoint: { url: urlOf(receiver, 1), envelope, signature, headers: { 'X-Team': 'billing' }, timeoutMs },
            secrets: live.slice(0, 2),
            nowMs: Date.now(),
          }),
        );
        expect({ status, said: Object.values(refusals).filter((said) => said !== null) }).toEqual({
          status: 200,
          said: [],
        });
      }
    });

    it.each(forgeries)('is refused with $name', async ({ ageMs = 0, unknownSecret, change, refusal }) => {
      const before = verifiers.map((name) => tally.of(name).refused);
      await forEach(generateDeliveries(forgedBodies, 3), async (delivery, index) => {
        const oldest = index % maxLive;
        for (const receiver of running) {
          const url = urlOf(receiver, unknownSecret ? unknown : oldest);
          const request = build(delivery, url, [0, oldest], false, Date.now() - ageMs);
          const { status, refusals } = await ask(change ? change(request) : request);
          tally.count(refusals);
          expect({ status, refusals }).toEqual({
            status: 400,
            refusals: Object.fromEntries(
              Object.keys(refusals).map((name) => [name, expect.stringMatching(refusal) as string]),
            ),
          });
        }
      });
      expect(verifiers.map((name) => tally.of(name).refused)).toEqual(before.map((count) => count + forgedBodies));
    });

    it.each(reader?.malformed ?? [])(
      'is refused by the reader, however well it is signed, with $name',
      async ({ change }) => {
        await forEach(generateDeliveries(forgedBodies, 4), async (delivery) => {
          const request = build(delivery, urlOf(running[0]!, 0), [0, 0]);
          const changed = change(request);
          expect(changed).not.toEqual(request);
          const { refusals } = await ask(sign(changed, live.slice(0, 1)));
          const { [reader?.name ?? '']: said = null, ...others } = refusals;
          tally.count({ [reader?.name ?? '']: said });
          expect(said).not.toBeNull();
          expect(Object.values(others).filter((refusal) => refusal !== null)).toEqual([]);
        });
      },
    );
  });
}

type Span = readonly [newest: number, oldest: number];

/** Changes of a request that no signature covers any more. */
export const changeBody = (change: (text: string) => string) => (request: OutboundRequest) => ({
  ...request,
  body: Buffer.from(change(String(request.body)), 'utf8'),
});
export const changeHeader = (name: string, change: (value: string) => string | null) => (request: OutboundRequest) => {
  const { [name]: value = '', ...others } = request.headers;
  const changed = change(value);
  return { ...request, headers: changed === null ? others : { ...others, [name]: changed } };
};
