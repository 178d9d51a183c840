import { Injectable } from '@nestjs/common';
import { EventFeedStore, type FeedCursor } from '../../database/event-feed-store.js';
import { eventIdPattern } from '../../domain/ids.js';
import { notFound, Problem } from '../../http/problems/problem.js';
import { decodeFeedCursor, encodeFeedCursor } from './event-feed.cursor.js';
import { type EventFeedQuery, toEventState, toFollowedEvent } from './event-feed.dto.js';

@Injectable()
export class EventFeedService {
  constructor(private readonly feed: EventFeedStore) {}

  async page(tenantId: string, query: EventFeedQuery) {
    const { after, type, endpoint_id: endpointId, limit, operational } = query;
    const filters = endpointId === undefined ? null : await this.feed.endpointFilters(tenantId, endpointId);
    if (endpointId !== undefined && filters === null) throw notFound('endpoint', endpointId);
    const cursor = after === undefined ? null : await this.cursorOf(tenantId, after);
    const page = await this.feed.page(
      { tenantId, cursor, limit, type: type ?? null, endpointId: endpointId ?? null, operational },
      filters,
    );
    return {
      data: page.rows.map(toFollowedEvent),
      next_cursor: page.next && encodeFeedCursor(page.next),
      prev_cursor: page.prev && encodeFeedCursor(page.prev),
    };
  }

  /** The event as JSON text. */
  async get(tenantId: string, id: string): Promise<string> {
    const event = eventIdPattern.test(id) ? await this.feed.get(tenantId, id) : null;
    if (!event) throw notFound('event', id);
    return toEventState(event);
  }

  private async cursorOf(tenantId: string, after: string): Promise<FeedCursor> {
    const cursor = decodeFeedCursor(after);
    if (cursor) return cursor;
    const position = await this.feed.positionOf(tenantId, after);
    if (position) return { direction: 'next', ...position };
    throw new Problem(
      422,
      'invalid_field',
      'after names no event that is there, or there any more: go on with a next_cursor, which stays good, or begin without after',
      { field: 'after' },
    );
  }
}
