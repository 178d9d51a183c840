import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { RecordingReceiver, startPosthorn } from '../support/posthorn.js';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const line = (text: string, name: string): string | undefined =>
  text
    .split('\n')
    .find((one) => one.startsWith(name))
    ?.slice(name.length + 1);
const slots = (queue: string, kind: string, state: string): string =>
  `posthorn_worker_slots{task_queue="${queue}",kind="${kind}",state="${state}"}`;

it('a delivery is seen in the metrics of its process, and in one trace from the request to its receiver', async () => {
  const bodies: string[] = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  const posthorn = await startPosthorn({ extra: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
  const receiver = await RecordingReceiver.start();
  try {
    const { api } = posthorn;
    await api.createEndpoint(`${receiver.url}/hook`, ['seen.*']);
    let whileItRan = '';
    const look = async (): Promise<void> => void (whileItRan = await posthorn.core.metricsPage.text());
    receiver.answer = (_, reply) => {
      void look().finally(() => reply.writeHead(200).end());
    };
    const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
    const answer = await api.post('/v1/events', { type: 'seen.once', data: {} }, { traceparent });
    const [{ id }] = answer.body.deliveries;
    expect(await api.delivery(id, '10s')).toMatchObject({ status: 'succeeded' });
    const [request] = receiver.of(id);
    expect(request!.headers['traceparent']).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));

    const text = await (await fetch(`${api.baseUrl}/metrics`)).text();
    expect(line(text, 'posthorn_attempts_total{outcome="delivered",error_code="none"}')).toBe('1');
    expect(line(text, 'posthorn_deliveries_closed_total{status="succeeded",reason="delivered"}')).toBe('1');
    expect(line(text, 'posthorn_deliveries_started_total{by="dispatcher"}')).toBe('1');
    expect(line(text, 'posthorn_attempt_duration_seconds_count{outcome="delivered"}')).toBe('1');
    expect(line(text, slots('posthorn-attempts', 'activity', 'free'))).toBe('200');
    expect(line(text, slots('posthorn', 'activity', 'used'))).toBe('0');
    expect(line(text, slots('posthorn-control', 'workflow_task', 'free'))).toMatch(/^(50|4\d)$/);
    // The first attempt held the slot of its workflow, too.
    expect(line(whileItRan, slots('posthorn', 'activity', 'used'))).toBe('1');
    expect(line(whileItRan, slots('posthorn', 'workflow_task', 'used'))).toBe('1');
    expect(line(whileItRan, slots('posthorn', 'workflow_task', 'free'))).toBe('249');
    expect(line(text, 'posthorn_event_feed_lag_seconds')).toBe('0');
  } finally {
    await posthorn.stop();
    await receiver.stop();
    collector.close();
    collector.closeAllConnections();
  }
  const sent = bodies.join('\n');
  expect(
    [...sent.matchAll(/"name":"(publish|attempt)"/g)].map(([, name]) => name).toSorted((a, b) => (a! < b! ? -1 : 1)),
  ).toEqual(['attempt', 'publish']);
  expect(new Set([...sent.matchAll(/"traceId":"(\w+)"/g)].map(([, id]) => id))).toEqual(new Set([traceId]));
});
