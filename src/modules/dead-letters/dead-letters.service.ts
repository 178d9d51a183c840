import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { DeliveryStore } from '../../database/delivery-store.js';
import { LetterStore } from '../../database/letter-store.js';
import type { Access } from '../../http/access/access.js';
import type { ActionBody } from '../../http/delivery.dto.js';
import { listScope, numbered, toPageRequest } from '../../http/page.dto.js';
import { notFound } from '../../http/problems/problem.js';
import { configToken } from '../../http/tokens.js';
import { WorkflowLinks } from '../../http/workflow-links.js';
import { DeliveriesService, letterResolved } from '../deliveries/deliveries.service.js';
import { type LetterQuery, toLetter, toLetterFilter, toWholeLetter } from './dead-letters.dto.js';
import type { LetterKey } from './letter-id.pipe.js';

@Injectable()
export class DeadLettersService {
  private readonly workflows: WorkflowLinks;

  constructor(
    private readonly letters: LetterStore,
    private readonly rows: DeliveryStore,
    private readonly deliveries: DeliveriesService,
    @Inject(configToken) config: Config,
  ) {
    this.workflows = new WorkflowLinks(config.temporal);
  }

  async list(tenantId: string, query: LetterQuery) {
    const filter = toLetterFilter(query);
    const scope = listScope('dead-letters', tenantId, filter);
    const page = await this.letters.list(tenantId, filter, toPageRequest(query, { scope, positions: numbered }));
    return { data: page.rows.map(toLetter), next_cursor: page.nextCursor, prev_cursor: page.prevCursor };
  }

  async get(tenantId: string, { id, deliveryId, round }: LetterKey) {
    const letter = await this.letters.get(tenantId, deliveryId, round);
    const delivery = letter && (await this.rows.get(tenantId, deliveryId));
    if (!delivery) throw notFound('dead letter', id);
    return toWholeLetter(letter, delivery, this.workflows);
  }

  /** The redelivery of its delivery, if the letter is open. */
  replay(access: Access, tenantId: string, { deliveryId, round }: LetterKey, body: ActionBody) {
    return this.deliveries.redeliver(access, tenantId, deliveryId, body, round);
  }

  async discard(access: Access, tenantId: string, { id, deliveryId, round }: LetterKey, body: ActionBody) {
    const by = { keyId: access.keyId, reason: body?.reason ?? null };
    const result = await this.letters.discard(tenantId, deliveryId, round, by);
    if (!result) throw notFound('dead letter', id);
    const { kind, letter } = result;
    if (kind === 'already_resolved' && letter.resolution !== null) throw letterResolved(letter.resolution);
    return toLetter(letter);
  }
}
