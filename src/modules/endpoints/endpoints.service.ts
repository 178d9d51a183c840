import { Inject, Injectable } from '@nestjs/common';
import { EndpointStore } from '../../database/endpoint-store.js';
import { WaitingDeliveries } from '../../database/waiting-deliveries.js';
import { type AddressPolicy, judgeUrl } from '../../delivery/address-policy.js';
import { idPrefixes } from '../../domain/ids.js';
import { profiles } from '../../domain/profiles.js';
import { newId } from '../../security/new-id.js';
import { SecretBox } from '../../security/secret-box.js';
import { generateSecret } from '../../security/signing-secret.js';
import { TemporalAnnouncer } from '../../temporal/announcer.js';
import { type Access, tenantOf } from '../../http/access/access.js';
import { toPageRequest } from '../../http/page.dto.js';
import { addressPolicyToken } from '../../http/tokens.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { type EndpointQuery, type NewEndpointBody, toEndpoint } from './endpoints.dto.js';

@Injectable()
export class EndpointsService {
  constructor(
    private readonly endpoints: EndpointStore,
    private readonly waiting: WaitingDeliveries,
    private readonly announcer: TemporalAnnouncer,
    @Inject(addressPolicyToken) private readonly addresses: AddressPolicy,
    private readonly secrets: SecretBox,
  ) {}

  async create(access: Access, body: NewEndpointBody) {
    const judged = judgeUrl(body.url, this.addresses);
    if (!judged.ok) throw new Problem(422, 'invalid_url', judged.message, { field: 'url' });
    const secret = generateSecret();
    const id = newId(idPrefixes.endpoint);
    const row = await this.endpoints.create({
      id,
      tenantId: tenantOf(access, body.tenant_id),
      url: judged.url.href,
      events: [...new Set(body.events)],
      description: body.description ?? null,
      profile: body.profile,
      timeoutMs: body.timeout_ms ?? profiles[body.profile].timeoutMs,
      retryWaitsMs: body.retry_waits_ms ?? null,
      sealedSecret: this.secrets.seal(secret, id),
    });
    return { ...toEndpoint(row), secret };
  }

  async list(tenantId: string, query: EndpointQuery) {
    const page = await this.endpoints.list(tenantId, toPageRequest(query));
    return { data: page.rows.map(toEndpoint), next_cursor: page.nextCursor, prev_cursor: page.prevCursor };
  }

  async get(tenantId: string, id: string) {
    const row = await this.endpoints.get(tenantId, id);
    if (!row) throw notFound('endpoint', id);
    return toEndpoint(row);
  }

  /** Deleted first, then what waits is cancelled: nothing starts once the first statement is committed. */
  async delete(tenantId: string, id: string): Promise<void> {
    if (!(await this.endpoints.delete(tenantId, id))) throw notFound('endpoint', id);
    await this.waiting.closeAllOf(id, (closed) => this.announcer.deliveriesClosed(closed));
  }
}
