import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { AttemptRunner } from '../../../activities/attempt-runner.js';
import { OtelTracing } from '../../../src/telemetry/otel-tracing.js';
import { PassiveTracing, type Tracing } from '../../../src/telemetry/tracing.js';
import { Attempts, newEvent } from './harness.js';

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: number } }[];
  readonly status: { code?: number };
}
interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

/** A server on a free port that keeps what it gets. */
async function listen(statuses: () => number): Promise<{
  url: string;
  server: Server;
  requests: { headers: IncomingHttpHeaders; body: string }[];
}> {
  const requests: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      requests.push({ headers: request.headers, body });
      response.writeHead(statuses(), { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, requests };
}

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const given = `00-${traceId}-00f067aa0ba902b7-01`;

let attempts: Attempts;
let hook: Awaited<ReturnType<typeof listen>>;
let collector: Awaited<ReturnType<typeof listen>>;
let status: number;

beforeAll(async () => {
  attempts = await Attempts.start();
  hook = await listen(() => status);
  collector = await listen(() => 200);
});
beforeEach(() => {
  status = 200;
  hook.requests.length = 0;
  collector.requests.length = 0;
});
afterAll(async () => {
  await attempts.stop();
  for (const { server } of [hook, collector]) {
    server.close();
    server.closeAllConnections();
  }
});

function runnerWith(tracing: Tracing): AttemptRunner {
  return attempts.newRunner(attempts.client, {
    startAttempt: (facts) => tracing.startAttempt(facts),
    attemptRecorded: nothing,
    attemptNotSent: nothing,
    deliveryClosed: nothing,
  });
}

/** As the events' service does it. */
function publish(tracing: Tracing, traceparent: string | undefined): Promise<{ id: string; endpointId: string }> {
  return tracing.publish(traceparent, async (mine) => {
    const endpointId = await attempts.createEndpoint(`${hook.url}/hook`);
    const [result] = await attempts.events.publish([
      newEvent(`only.${endpointId.toLowerCase()}`, {
        data: '{"secret":"payload-that-stays-out"}',
        traceparent: mine,
      }),
    ]);
    if (result?.kind !== 'accepted') throw new Error('not accepted');
    return { id: result.deliveries[0]!.id, endpointId };
  });
}

function spansOf(): { spans: OtlpSpan[]; service: string | undefined } {
  const parts = collector.requests.flatMap(({ body }) => (JSON.parse(body) as OtlpRequest).resourceSpans);
  return {
    spans: parts.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    service: parts[0]?.resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue,
  };
}

const attribute = (span: OtlpSpan, name: string): string | number | undefined => {
  const value = span.attributes.find(({ key }) => key === name)?.value;
  return value?.stringValue ?? value?.intValue;
};

it('goes from the publish request to every attempt, a redelivery too, and on to the endpoint', async () => {
  const tracing = new OtelTracing({ url: `${collector.url}/v1/traces`, serviceName: 'posthorn-test', log: silent });
  const runner = runnerWith(tracing);
  const delivery = await publish(tracing, given);
  status = 500;
  await runner.run(attempts.input(delivery), 'local');
  status = 200;
  await runner.run(attempts.input(delivery, { sequence: 2, force: true }), 'ordinary');
  await runner.run(attempts.input(delivery, { runId: 'run-2', intent: 'redeliver' }), 'ordinary');
  await tracing.stop();

  const { spans, service } = spansOf();
  expect(service).toBe('posthorn-test');
  const published = spans.find(({ name }) => name === 'publish')!;
  expect(published).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7', kind: 2 });
  const sent = spans.filter(({ name }) => name === 'attempt');
  expect(sent.map((span) => [span.traceId, span.parentSpanId])).toEqual(
    Array.from({ length: 3 }, () => [traceId, published.spanId]),
  );
  const names = ['attempt.number', 'attempt.lane', 'run.id', 'delivery.id', 'endpoint.id'];
  const about = [delivery.id, delivery.endpointId];
  expect(sent.map((span) => names.map((name) => attribute(span, `posthorn.${name}`)))).toEqual([
    [1, 'local', 'run-1', ...about],
    [2, 'ordinary', 'run-1', ...about],
    [3, 'ordinary', 'run-2', ...about],
  ]);
  expect(sent.map((span) => [attribute(span, 'http.response.status_code'), span.status.code ?? 0])).toEqual([
    [500, 2],
    [200, 0],
    [200, 0],
  ]);
  expect(hook.requests.map(({ headers }) => headers['traceparent'])).toEqual(
    sent.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
  );
  expect(JSON.stringify(spans)).not.toContain('payload-that-stays-out');
});

it('begins a trace where the publisher has none', async () => {
  const tracing = new OtelTracing({ url: `${collector.url}/v1/traces`, serviceName: 'posthorn', log: silent });
  const delivery = await publish(tracing, undefined);
  await runnerWith(tracing).run(attempts.input(delivery), 'local');
  await tracing.stop();
  const { spans } = spansOf();
  const [published, sent] = ['publish', 'attempt'].map((name) => spans.find((span) => span.name === name)!);
  expect(published!.parentSpanId ?? '').toBe('');
  expect(sent).toMatchObject({ traceId: published!.traceId, parentSpanId: published!.spanId });
});

it("obeys the publisher's choice not to record, and still hands the trace on", async () => {
  const tracing = new OtelTracing({ url: `${collector.url}/v1/traces`, serviceName: 'posthorn', log: silent });
  const delivery = await publish(tracing, given.replace(/01$/, '00'));
  await runnerWith(tracing).run(attempts.input(delivery), 'local');
  await tracing.stop();
  expect(spansOf().spans).toEqual([]);
  expect(hook.requests[0]!.headers['traceparent']).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
});

it("hands the publisher's own context on where nothing is traced", async () => {
  const tracing = new PassiveTracing();
  const runner = runnerWith(tracing);
  await runner.run(attempts.input(await publish(tracing, given)), 'local');
  await runner.run(attempts.input(await publish(tracing, 'nonsense')), 'local');
  expect(hook.requests.map(({ headers }) => headers['traceparent'])).toEqual([given, undefined]);
});

it('loses spans, and nothing else, where the collector is away', async () => {
  const tracing = new OtelTracing({ url: 'http://127.0.0.1:1/v1/traces', serviceName: 'posthorn', log: silent });
  const delivery = await publish(tracing, given);
  const outcome = await runnerWith(tracing).run(attempts.input(delivery), 'local');
  expect(outcome).toMatchObject({ kind: 'closed', status: 'succeeded' });
  await tracing.stop();
});
