import { Injectable } from '@nestjs/common';
import { type CallReport, EndpointCaller } from '../../contact/endpoint-caller.js';
import { EndpointStore } from '../../database/endpoint-store.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { callIntervalMs, CallLimiter, maxCallsAtOnce } from './call-limiter.js';
import { toCallReport } from './endpoint-calls.dto.js';
import { readTestSend } from './test-body.js';

/** Calls by hand: made now, answered with what came of them, and counting for nothing else. */
@Injectable()
export class EndpointCallsService {
  private readonly limiter = new CallLimiter();

  constructor(
    private readonly endpoints: EndpointStore,
    private readonly caller: EndpointCaller,
  ) {}

  ping(tenantId: string, id: string) {
    return this.call(tenantId, id, () => this.caller.ping(id));
  }

  test(tenantId: string, id: string, body: Buffer) {
    const send = readTestSend(body);
    return this.call(tenantId, id, () => this.caller.test(id, send));
  }

  private async call(tenantId: string, id: string, call: () => Promise<CallReport | null>) {
    if (!(await this.endpoints.get(tenantId, id))) throw notFound('endpoint', id);
    const done = await this.limiter.run(id, async () => ({ report: await call() }));
    if (!done) {
      const rule = `An endpoint is called by hand once every ${callIntervalMs} ms, and ${maxCallsAtOnce} times at once, at most`;
      throw tooMany(rule);
    }
    if (!done.report) throw notFound('endpoint', id);
    if (!done.report.sent) throw tooMany('As many requests as are allowed are on their way to this endpoint');
    return toCallReport(done.report);
  }
}

function tooMany(rule: string): Problem {
  return new Problem(429, 'too_many_requests', `${rule}: repeat it in a second`, { headers: { 'Retry-After': '1' } });
}
