import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RecordingReceiver } from '../../support/posthorn.js';
import { answer, startRawEndpoint } from '../../support/raw-endpoint.js';
import { about, Attempts, day } from './harness.js';

let attempts: Attempts;
let receiver: RecordingReceiver;
beforeAll(async () => {
  attempts = await Attempts.start();
  receiver = await RecordingReceiver.start();
});
beforeEach(() => {
  attempts.settings = { retryWaitsMs: null, refusedWaitMs: 30 * 60_000, maxInFlight: 64, letterExpiryMs: 30 * day };
  attempts.told.letters.length = 0;
  attempts.told.closed.length = 0;
});
afterAll(async () => {
  await attempts.stop();
  await receiver.stop();
});

function says(status: number, headers: Record<string, string> = {}, body: string | Buffer = ''): void {
  receiver.answer = (_, reply) => void reply.writeHead(status, headers).end(body);
}

const minute = 60_000;

describe('a 2xx', () => {
  it.each([200, 201, 202, 204, 226, 299])('%i is delivered', async (status) => {
    says(status);
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'closed',
      status: 'succeeded',
      reason: 'delivered',
      round: 1,
      attemptCount: 1,
      lastStatusCode: status,
      lastError: null,
    });
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'succeeded',
      next_attempt_at: null,
      sweep_after: null,
    });
    expect(await attempts.recorded(delivery)).toMatchObject([
      { number: 1, round: 1, status_code: status, error_code: null, outcome: 'delivered', resent: false },
    ]);
  });

  it('whose body never ends is delivered all the same', async () => {
    const endless = await startRawEndpoint((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const timer = setInterval(() => socket.write('5\r\nhello\r\n'), 50);
      socket.on('close', () => clearInterval(timer));
    });
    const delivery = await attempts.publish(`http://127.0.0.1:${endless.port}/`, { timeoutMs: 1_000 });
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'closed', status: 'succeeded' });
    expect(await attempts.recorded(delivery)).toMatchObject([
      { status_code: 200, error_code: null, response_truncated: true },
    ]);
    await endless.close();
  });

  it.each([
    ['NUL and invalid UTF-8', Buffer.from([0x00, 0xff, 0xfe, 0xc3, 0x28, 0x00])],
    ['what claims to be compressed and is not', Buffer.from('not gzip')],
    ['a megabyte', Buffer.alloc(1_000_000, 'x')],
  ])('with %s in its body and odd headers is recorded', async (_, body) => {
    const odd = await startRawEndpoint((socket) => {
      const headers = [
        'Content-Encoding: gzip',
        'X-Odd: \u00ff\u0080',
        ...Array.from({ length: 20 }, (_, i) => `X-${i}: v`),
      ];
      socket.write(answer('200 OK', body, headers));
    });
    const delivery = await attempts.publish(`http://127.0.0.1:${odd.port}/`);
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'closed', status: 'succeeded' });
    const [recorded] = await attempts.recorded(delivery);
    const kept = (recorded.response_body as Buffer).length;
    expect(kept).toBe(Math.min(body.length, 16 * 1024));
    expect((recorded.response_body as Buffer).equals(body.subarray(0, kept))).toBe(true);
    expect(recorded.response_truncated).toBe(body.length > kept);
    expect(JSON.parse(recorded.response_headers as string)).toContainEqual(['X-19', 'v']);
    await odd.close();
  });
});

describe('a failure that is tried again', () => {
  it.each([
    [301, 'redirect'],
    [302, 'redirect'],
    [304, 'redirect'],
    [400, 'http_status'],
    [404, 'http_status'],
    [408, 'http_status'],
    [422, 'http_status'],
    [425, 'http_status'],
    [500, 'http_status'],
    [502, 'http_status'],
    [599, 'http_status'],
  ])('%i waits the first minute of the schedule', async (status, code) => {
    says(status, { Location: `${receiver.url}/elsewhere`, 'Retry-After': '7200' });
    const before = receiver.requests.length;
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery, { jitterFactor: 1.1 })).toMatchObject({
      kind: 'failed',
      number: 1,
      reason: 'attempt_failed',
      statusCode: status,
      error: code,
      waitMs: about(1.1 * minute),
      next: { number: 2, host: new URL(receiver.url).host, endpointId: delivery.endpointId },
    });
    expect(receiver.requests).toHaveLength(before + 1);
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'retrying',
      last_status_code: status,
      attempt_count: 1,
    });
    expect((await attempts.endpoint(delivery.endpointId)).not_before).toBeNull();
  });

  it('counts its next attempt by the database’s clock, as the row says', async () => {
    says(500);
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery, { jitterFactor: 0.8 });
    const [row] = await attempts.sql<{ wait: number }>(
      'select extract(epoch from next_attempt_at - updated_at)::float8 as wait from deliveries where id = $1',
      [delivery.id],
    );
    expect(row!.wait).toBeCloseTo(48, 1);
  });

  it('by nobody listening is connection_refused', async () => {
    const gone = await startRawEndpoint(() => undefined);
    const url = `http://127.0.0.1:${gone.port}/`;
    await gone.close();
    const delivery = await attempts.publish(url);
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'failed',
      error: 'connection_refused',
      statusCode: null,
    });
  });

  it('by silence is timeout_response, and lasts as long as the endpoint was given', async () => {
    const silent = await startRawEndpoint(() => undefined);
    const delivery = await attempts.publish(`http://127.0.0.1:${silent.port}/`, { timeoutMs: 1_000 });
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'failed', error: 'timeout_response' });
    const [recorded] = await attempts.recorded(delivery);
    expect(recorded.duration_ms).toBeGreaterThanOrEqual(950);
    expect(recorded.duration_ms).toBeLessThan(2_000);
    await silent.close();
  });

  it('by an address that may not be dialled opens no socket', async () => {
    const delivery = await attempts.publish('https://10.1.2.3/hook');
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'failed',
      error: 'blocked_address',
      waitMs: about(minute),
    });
    expect(await attempts.recorded(delivery)).toMatchObject([{ error_code: 'blocked_address', remote_address: null }]);
  });
});

describe('Retry-After', () => {
  it.each([429, 503])('of a %i lengthens the wait and rests the whole endpoint', async (status) => {
    says(status, { 'Retry-After': '7200' });
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'failed',
      reason: 'retry_after',
      waitMs: about(7_200_000),
    });
    const { not_before: rest } = await attempts.endpoint(delivery.endpointId);
    expect((rest as Date).getTime() - Date.now()).toBeGreaterThan(7_190_000);
    // Another delivery of the endpoint waits as long, and spends nothing.
    const [other] = await attempts.publishTo(delivery.endpointId);
    expect(await attempts.attempt(other!)).toMatchObject({ kind: 'not_due', reason: 'retry_after' });
    expect(await attempts.row(other!)).toMatchObject({ attempt_count: 0, status: 'pending' });
  });

  it('as a date counts as well', async () => {
    says(503, { 'Retry-After': new Date(Date.now() + 3_600_000).toUTCString() });
    const delivery = await attempts.publish(receiver.url);
    const outcome = await attempts.attempt(delivery);
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'retry_after' });
    expect((outcome as { waitMs: number }).waitMs).toBeGreaterThan(3_590_000);
    expect((outcome as { waitMs: number }).waitMs).toBeLessThanOrEqual(3_600_000);
  });

  it('never shortens the wait, and is capped at a day', async () => {
    says(429, { 'Retry-After': '1' });
    expect(await attempts.attempt(await attempts.publish(receiver.url))).toMatchObject({ waitMs: about(minute) });
    says(429, { 'Retry-After': '9999999' });
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery)).toMatchObject({ waitMs: about(day) });
    const { not_before: rest } = await attempts.endpoint(delivery.endpointId);
    expect((rest as Date).getTime() - Date.now()).toBeLessThanOrEqual(day + 1_000);
  });
});

describe('refused credentials', () => {
  it.each([401, 403])(
    '%i from an endpoint that had accepted rest half an hour, and are told once an episode',
    async (status) => {
      says(200);
      const first = await attempts.publish(receiver.url);
      await attempts.attempt(first);
      const before = await attempts.endpoint(first.endpointId);
      says(status);
      const [one, two] = await attempts.publishTo(first.endpointId, 2);
      expect(await attempts.attempt(one!)).toMatchObject({ kind: 'failed', waitMs: about(30 * minute) });
      const refused = await attempts.endpoint(first.endpointId);
      expect(refused.refused_since).not.toBeNull();
      expect(Number(refused.health_version)).toBe(Number(before.health_version) + 1);
      await attempts.attempt(two!);
      const again = await attempts.endpoint(first.endpointId);
      expect(again.health_version).toBe(refused.health_version);
      says(200);
      await attempts.attempt(one!, { sequence: 2, force: true });
      expect(await attempts.endpoint(first.endpointId)).toMatchObject({ refused_since: null, failing_since: null });
    },
  );

  it('from an endpoint that never accepted are failures like others', async () => {
    says(401);
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'failed', waitMs: about(minute) });
    expect((await attempts.endpoint(delivery.endpointId)).refused_since).toBeNull();
  });
});

describe('a 410', () => {
  it('disables the endpoint with the record, and its waiting deliveries become dead letters', async () => {
    says(200);
    const endpointId = await attempts.createEndpoint(receiver.url);
    const [delivered, gone, ...waiting] = await attempts.publishTo(endpointId, 5);
    await attempts.attempt(delivered!);
    const { health_version: version } = await attempts.endpoint(endpointId);
    says(410, { 'X-Why': 'moved away' }, 'gone for good');
    expect(await attempts.attempt(gone!)).toMatchObject({ kind: 'closed', status: 'failed', reason: 'endpoint_gone' });
    const endpoint = await attempts.endpoint(endpointId);
    expect(endpoint).toMatchObject({ status: 'disabled', status_reason: 'gone' });
    expect(Number(endpoint.health_version)).toBe(Number(version) + 1);
    for (const delivery of waiting) {
      expect(await attempts.row(delivery)).toMatchObject({
        status: 'failed',
        reason: 'endpoint_gone',
        sweep_after: null,
      });
      expect(await attempts.lettersOf(delivery)).toMatchObject([{ reason: 'endpoint_gone', attempts: 0 }]);
    }
    expect(await attempts.row(delivered!)).toMatchObject({ status: 'succeeded' });
    expect(attempts.told.closed.map(({ id }) => id).sort()).toEqual(waiting.map(({ id }) => id).sort());
    expect(attempts.told.letters).toContain(endpointId);
    expect(await attempts.lettersOf(gone!)).toMatchObject([{ last_status_code: 410 }]);
  });

  it('raises the health version once, however many say it', async () => {
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 3);
    for (const delivery of deliveries)
      await attempts.store.record(attempts.failure(delivery, { statusCode: 410, gone: true }));
    // Its creation; then the first failure and the end are one change, and nothing changes afterwards.
    expect(Number((await attempts.endpoint(endpointId)).health_version)).toBe(2);
  });
});

describe('a row that can not be sent', () => {
  it.each([
    ['a secret that no key opens', `update endpoint_secrets set sealed = 'v1.k1.AAAA' where endpoint_id = $1`],
    ['no secret', 'delete from endpoint_secrets where endpoint_id = $1'],
    ['a URL that is none', `update endpoints set url = 'not a url' where id = $1`],
  ])('for %s fails its own attempt as config_invalid, and is tried again', async (_, breakIt) => {
    says(200);
    const before = receiver.requests.length;
    const delivery = await attempts.publish(receiver.url);
    await attempts.sql(breakIt, [delivery.endpointId]);
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'failed',
      error: 'config_invalid',
      waitMs: about(minute),
    });
    expect(receiver.requests).toHaveLength(before);
    expect(await attempts.recorded(delivery)).toMatchObject([{ error_code: 'config_invalid', remote_address: null }]);
    const neighbour = await attempts.publish(receiver.url);
    expect(await attempts.attempt(neighbour)).toMatchObject({ kind: 'closed', status: 'succeeded' });
  });
});

describe('the dead letter of an exhausted delivery', () => {
  it('keeps the event, the endpoint, the attempts, the last answer, the reason and an expiry of 30 days or more', async () => {
    attempts.settings = { ...attempts.settings, retryWaitsMs: [1] };
    says(500, { 'X-Trace': 'abc' }, 'it broke');
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    const outcome = await attempts.attempt(delivery, { sequence: 2, force: true });
    expect(outcome).toMatchObject({ kind: 'closed', status: 'failed', reason: 'attempts_exhausted', attemptCount: 2 });
    const [letter, ...more] = await attempts.lettersOf(delivery);
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      round: 1,
      event_id: delivery.eventId,
      endpoint_id: delivery.endpointId,
      reason: 'attempts_exhausted',
      attempts: 2,
      last_status_code: 500,
      announced_at: null,
      resolved_at: null,
    });
    expect((letter.last_response_body as Buffer).toString()).toBe('it broke');
    expect(JSON.parse(letter.last_response_headers as string)).toContainEqual(['X-Trace', 'abc']);
    expect((letter.expires_at as Date).getTime() - (letter.created_at as Date).getTime()).toBeGreaterThanOrEqual(
      30 * day,
    );
    expect(attempts.told.letters).toEqual([delivery.endpointId]);
    // The original event is there, byte for byte.
    const [event] = await attempts.sql('select data from events where id = $1', [letter.event_id]);
    expect(event).toEqual({ data: '{"card":4242}' });
  });

  it('is resolved by a redelivery that succeeds', async () => {
    attempts.settings = { ...attempts.settings, retryWaitsMs: [] };
    says(500);
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    says(200);
    expect(await attempts.attempt(delivery, { runId: 'run-2', intent: 'redeliver' })).toMatchObject({
      kind: 'closed',
      status: 'succeeded',
      round: 2,
    });
    expect(await attempts.lettersOf(delivery)).toMatchObject([{ round: 1, resolution: 'replayed' }]);
  });
});
