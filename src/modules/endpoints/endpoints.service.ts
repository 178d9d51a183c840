import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import type { ActionResult } from '../../database/endpoint-actions.js';
import { EndpointHealthStore } from '../../database/endpoint-health-store.js';
import { EventTypeStore } from '../../database/event-type-store.js';
import {
  type EndpointChange,
  type EndpointRow,
  EndpointStore,
  type SealedSigningKey,
  type StoredSettings,
} from '../../database/endpoint-store.js';
import { WaitingDeliveries } from '../../database/waiting-deliveries.js';
import { type AddressPolicy, judgeUrl } from '../../delivery/address-policy.js';
import { headersContext } from '../../delivery/open-endpoint.js';
import { type CustomHeaders, maskHeaders } from '../../domain/custom-headers.js';
import { idPrefixes } from '../../domain/ids.js';
import { newId } from '../../security/new-id.js';
import { SecretBox, SecretBoxError } from '../../security/secret-box.js';
import { generateSigningKey } from '../../security/signing-key.js';
import { generateSecret } from '../../security/signing-secret.js';
import { TemporalAnnouncer } from '../../temporal/announcer.js';
import { type Access, tenantOf } from '../../http/access/access.js';
import { toPageRequest } from '../../http/page.dto.js';
import { addressPolicyToken, configToken } from '../../http/tokens.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { EndpointCredentials, type GivenCredentials, takeUserinfo } from './endpoint-credentials.js';
import { unmaskHeaders } from './endpoint-headers.js';
import { toHealth } from './endpoint-health.dto.js';
import type { RenewalBody } from './endpoint-renewal.dto.js';
import { expiryRule } from './endpoint-settings.dto.js';
import { stateConflict } from './endpoint-state-conflict.js';
import { type EndpointPatchBody, type EndpointQuery, type NewEndpointBody, toEndpoint } from './endpoints.dto.js';
import { allowsChange, toETag } from './if-match.js';

/** What of an endpoint is sealed, with the URL that will count. */
type StoredRow = Pick<
  EndpointRow,
  'id' | 'url' | 'sealed_headers' | 'sealed_credentials' | 'sealed_client_certificate'
>;

const blank = { sealed_headers: null, sealed_credentials: null, sealed_client_certificate: null };

@Injectable()
export class EndpointsService {
  private readonly credentials: EndpointCredentials;

  constructor(
    private readonly endpoints: EndpointStore,
    private readonly types: EventTypeStore,
    private readonly healthStore: EndpointHealthStore,
    private readonly waiting: WaitingDeliveries,
    private readonly announcer: TemporalAnnouncer,
    @Inject(addressPolicyToken) private readonly addresses: AddressPolicy,
    private readonly secrets: SecretBox,
    @Inject(configToken) private readonly config: Config,
  ) {
    this.credentials = new EndpointCredentials(secrets, addresses);
  }

  async create(access: Access, { url, events, secret = generateSecret(), tenant_id, ...body }: NewEndpointBody) {
    const id = newId(idPrefixes.endpoint);
    const tenantId = tenantOf(access, tenant_id);
    const apiVersion = body.api_version ?? (await this.defaultVersion(tenantId));
    const target = this.accepted(url, body);
    const row = await this.endpoints.create({
      ...this.toSettings({ ...blank, id, url: target.url }, { ...body, ...target.given, api_version: apiVersion }),
      id,
      tenantId,
      url: target.url,
      events: unique(events),
      profile: body.profile ?? 'default',
      sealedSecret: this.secrets.seal(secret, id),
      verificationRequired: this.config.verification.required,
    });
    void this.announcer.endpointChanged(id);
    const { endpoint, etag } = this.answer(row);
    return { endpoint: { ...endpoint, secret }, etag };
  }

  async list(tenantId: string, query: EndpointQuery) {
    const page = await this.endpoints.list(tenantId, toPageRequest(query));
    return {
      data: page.rows.map((row) => this.answer(row).endpoint),
      next_cursor: page.nextCursor,
      prev_cursor: page.prevCursor,
    };
  }

  async get(tenantId: string, id: string) {
    const row = await this.endpoints.get(tenantId, id);
    if (!row) throw notFound('endpoint', id);
    return this.answer(row);
  }

  async change(tenantId: string, id: string, { url, events, ...body }: EndpointPatchBody, ifMatch: string | undefined) {
    const { required } = this.config.verification;
    const apiVersion = body.api_version === null ? await this.defaultVersion(tenantId) : body.api_version;
    const target = url === undefined ? null : this.accepted(url, body);
    const wanted = {
      ...(apiVersion === undefined ? {} : { apiVersion }),
      ...(target === null ? {} : { url: target.url }),
      ...(events === undefined ? {} : { events: unique(events) }),
    };
    const changed = await this.endpoints.change(tenantId, id, required, (row) => {
      const etag = toETag(row.version);
      if (!allowsChange(ifMatch, etag)) {
        const detail = `The endpoint has the ETag ${etag} now: read it again, and repeat the change`;
        throw new Problem(412, 'precondition_failed', detail, { field: 'If-Match' });
      }
      return { ...wanted, ...this.toSettings({ ...row, ...wanted }, { ...body, ...target?.given }) };
    });
    if (!changed) throw notFound('endpoint', id);
    // Committed first: nothing starts that these would miss.
    if (changed.urlChanged && changed.row.status !== 'active') await this.closeWaiting(id);
    if (changed.healthChanged) void this.announcer.endpointChanged(id);
    return this.answer(changed.row);
  }

  async verify(tenantId: string, id: string) {
    const row = await this.endpoints.verifyAgain(tenantId, id);
    if (row === null) throw notFound('endpoint', id);
    if (row === 'already_verified') {
      throw new Problem(409, 'already_verified', 'The endpoint is verified already: there is nothing to verify');
    }
    void this.announcer.endpointChanged(id);
    return this.answer(row);
  }

  async pause(tenantId: string, id: string) {
    return this.acted(tenantId, id, await this.healthStore.pause(tenantId, id));
  }

  async resume(tenantId: string, id: string) {
    return this.acted(tenantId, id, await this.healthStore.resume(tenantId, id));
  }

  async enable(tenantId: string, id: string) {
    return this.acted(tenantId, id, await this.healthStore.enable(tenantId, id));
  }

  async renew(tenantId: string, id: string, { expires_at: expiresAt }: RenewalBody) {
    const until = expiresAt === null ? null : new Date(expiresAt);
    return this.acted(tenantId, id, await this.healthStore.renew(tenantId, id, until));
  }

  async health(tenantId: string, id: string) {
    const report = await this.healthStore.health(tenantId, id);
    if (!report) throw notFound('endpoint', id);
    return toHealth(report);
  }

  /** Deleted first, then what waits is cancelled: nothing starts once the first statement is committed. */
  async delete(tenantId: string, id: string): Promise<void> {
    if (!(await this.endpoints.delete(tenantId, id))) throw notFound('endpoint', id);
    await this.closeWaiting(id);
    void this.announcer.endpointChanged(id);
  }

  /** The endpoint's row is changed and committed by now: nothing starts that closing what waits would miss. */
  private async acted(tenantId: string, id: string, result: ActionResult | null) {
    if (!result) throw notFound('endpoint', id);
    if (result.kind === 'conflict') throw stateConflict(result);
    if (result.kind === 'past') throw new Problem(422, 'invalid_field', expiryRule, { field: 'expires_at' });
    // Also when nothing changed: whoever paused it may have died before this.
    if (result.status !== 'active') await this.closeWaiting(id);
    if (result.changed) void this.announcer.endpointChanged(id);
    return this.get(tenantId, id);
  }

  private async closeWaiting(id: string): Promise<void> {
    await this.waiting.closeAllOf(id, (closed) => this.announcer.deliveriesClosed(closed));
  }

  /** The newest version of what is registered; where nothing is, what there will be is later than today. */
  private async defaultVersion(tenantId: string): Promise<string> {
    return (await this.types.newestVersion(tenantId)) ?? new Date().toISOString().slice(0, 10);
  }

  /** The URL as it is called, and what a user name and password in it come to. */
  private accepted(text: string, body: GivenCredentials): { url: string; given: GivenCredentials } {
    const { url, credentials } = takeUserinfo(text);
    const judged = judgeUrl(url, this.addresses);
    if (!judged.ok) throw new Problem(422, 'invalid_url', judged.message, { field: 'url' });
    if (credentials === undefined) return { url: judged.url.href, given: {} };
    if (body.credentials !== undefined) {
      const detail = 'send either credentials or a user name and password in url: a request has one Authorization';
      throw new Problem(422, 'invalid_field', detail, { field: 'credentials' });
    }
    return { url: judged.url.href, given: { credentials } };
  }

  /** The optional settings as they are stored; those that a body leaves out stay out. */
  private toSettings(row: StoredRow, body: Omit<EndpointPatchBody, 'url' | 'events'>): EndpointChange {
    const { id } = row;
    const stored = this.openHeaders(row);
    const headers = body.headers === undefined ? undefined : unmaskHeaders(body.headers ?? {}, stored ?? {});
    const given: { readonly [Name in keyof StoredSettings]?: StoredSettings[Name] | undefined } = {
      description: body.description,
      metadata: body.metadata === undefined ? undefined : JSON.stringify(body.metadata ?? {}),
      profile: body.profile === null ? 'default' : body.profile,
      envelope: body.envelope,
      signature: body.signature,
      timeoutMs: body.timeout_ms,
      retryWaitsMs: body.retry_waits_ms,
      verification: body.verification,
      payload: body.payload === null ? 'full' : body.payload,
      sealedHeaders: headers && this.sealHeaders(id, headers, stored),
      rateLimitPerSecond: body.rate_limit_per_second,
      maxInFlight: body.max_in_flight,
      expiresAt: typeof body.expires_at === 'string' ? new Date(body.expires_at) : body.expires_at,
      ownerEmail: body.owner_email,
      pingIntervalMs: body.ping_interval_ms,
      apiVersion: body.api_version ?? undefined,
      filter: body.filter === undefined ? undefined : toFilterText(body.filter),
    };
    return {
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
      ...this.credentials.toSettings(row, body, { url: row.url, headers: headers ?? stored ?? {} }),
      ...(body.signature === 'standard_webhooks_ed25519' ? { signingKey: this.newSigningKey(id) } : {}),
    };
  }

  private newSigningKey(id: string): SealedSigningKey {
    const { secret, publicKey } = generateSigningKey();
    return { sealed: this.secrets.seal(secret, id), publicKey };
  }

  /** Undefined where nothing changes: sealing the same text again would look like a change. */
  private sealHeaders(id: string, headers: CustomHeaders, stored: CustomHeaders | null): string | null | undefined {
    if (JSON.stringify(headers) === JSON.stringify(stored)) return undefined;
    return Object.keys(headers).length === 0 ? null : this.secrets.seal(JSON.stringify(headers), headersContext(id));
  }

  /** Null when they can't be decrypted: one endpoint must not break a list. */
  private openHeaders({ id, sealed_headers }: StoredRow): CustomHeaders | null {
    if (sealed_headers === null) return {};
    try {
      return JSON.parse(this.secrets.open(sealed_headers, headersContext(id))) as CustomHeaders;
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  }

  private answer(row: EndpointRow) {
    const headers = this.openHeaders(row);
    const { retryWaitsMs, maxInFlight } = this.config.delivery;
    const view = { headers: headers && maskHeaders(headers), retryWaitsMs, maxInFlight, ...this.credentials.show(row) };
    return { endpoint: toEndpoint(row, view), etag: toETag(row.version) };
  }
}

/** A filter without conditions is none. */
function toFilterText(filter: Record<string, unknown> | null): string | null {
  return filter === null || Object.keys(filter).length === 0 ? null : JSON.stringify(filter);
}

function unique(events: readonly string[]): string[] {
  return [...new Set(events)];
}
