import { Injectable } from '@nestjs/common';
import { isStatementTooLong } from '../../database/database-errors.js';
import { EndpointStore } from '../../database/endpoint-store.js';
import { StatsStore } from '../../database/stats-store.js';
import { statsBuckets } from '../../domain/stats-window.js';
import { notFound, Problem } from '../../http/problems/problem.js';
import { type ShownWindow, type StatsQuery, toStats } from './stats.dto.js';

const defaultWindowMs = 24 * 3_600_000;

@Injectable()
export class StatsService {
  constructor(
    private readonly stats: StatsStore,
    private readonly endpoints: EndpointStore,
  ) {}

  async ofEndpoint(tenantId: string, endpointId: string, query: StatsQuery) {
    if (!(await this.endpoints.get(tenantId, endpointId))) throw notFound('endpoint', endpointId);
    return this.of(windowOf(tenantId, endpointId, query));
  }

  ofTenant(tenantId: string, query: StatsQuery) {
    return this.of(windowOf(tenantId, null, query));
  }

  private async of(window: ShownWindow) {
    try {
      return toStats(await this.stats.of(window), window);
    } catch (error) {
      if (!isStatementTooLong(error)) throw error;
      throw new Problem(
        422,
        'invalid_field',
        'This window holds too many attempts to be counted at once: ask for a shorter one',
        {
          field: 'from',
        },
      );
    }
  }
}

function windowOf(tenantId: string, endpointId: string | null, query: StatsQuery): ShownWindow {
  const { by } = query;
  const { longestMs, longest } = statsBuckets[by];
  const to = query.to ?? new Date();
  const from = query.from ?? new Date(to.getTime() - Math.min(defaultWindowMs, longestMs));
  if (from >= to) throw new Problem(422, 'invalid_field', 'from must be earlier than to', { field: 'from' });
  if (to.getTime() - from.getTime() > longestMs) {
    throw new Problem(
      422,
      'invalid_field',
      `By ${by} the window is at most ${longest}: ask for less, or for larger buckets`,
      {
        field: 'from',
      },
    );
  }
  return { tenantId, endpointId, from, to, by };
}
