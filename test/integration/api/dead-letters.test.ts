import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../../src/database/attempt-rows.js';
import { newId } from '../../../src/security/new-id.js';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;
let keyId: string;

beforeAll(async () => {
  posthorn = await startApi({ extra: { POSTHORN_TEMPORAL_UI_URL: 'https://temporal.example.com/' } });
  keyId = (await posthorn.sql<{ id: string }>('select id from api_keys'))[0]!.id;
});
afterAll(() => posthorn.stop());

const letters = '/v1/dead-letters';
const deliveries = '/v1/webhook-deliveries';
const data = '{"invoice_id":"inv_1",  "amount":12.50,"ü":"\\u00fc"}';

/** A delivery that waits for its first attempt. */
async function given(api: ApiClient = posthorn.api, type = 'letter.made'): Promise<{ id: string; endpointId: string }> {
  const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/hook', [type]);
  const answer = await api.post('/v1/events', `{"type":"${type}","source":"/tests","data":${data}}`);
  const made = (answer.body.deliveries as { id: string; endpoint_id: string }[]).find(
    (delivery) => delivery.endpoint_id === endpointId,
  )!;
  return { id: made.id, endpointId };
}

let sequence = 0;

/** Records an attempt as the worker does: the last of its round, unless there is a wait after it. */
async function attempt(deliveryId: string, round: number, how: Partial<AttemptRecord> = {}): Promise<void> {
  sequence += 1;
  await posthorn.core.attempts.record({
    id: newId('att_'),
    deliveryId,
    runId: 'run',
    sequence,
    round,
    startedAt: new Date(),
    durationMs: 12,
    statusCode: 503,
    errorCode: 'http_status',
    errorMessage: 'answered 503',
    responseHeaders: [
      ['content-type', 'text/plain'],
      ['x-a', '1'],
      ['x-a', '2'],
    ],
    responseBody: Buffer.from('no, thanks'),
    responseTruncated: false,
    remoteAddress: '127.0.0.1',
    resent: false,
    outcome: 'failed',
    gone: false,
    refused: false,
    waitMs: null,
    restMs: null,
    letterExpiryMs: 30 * 86_400_000,
    probeRestMs: 1_000,
    ...how,
  });
}

const delivered = { statusCode: 200, errorCode: null, errorMessage: null, outcome: 'delivered' } as const;

async function givenLetter(api?: ApiClient, type?: string) {
  const made = await given(api, type);
  await attempt(made.id, 1);
  return { ...made, letter: `${made.id}.1` };
}

const state = async (letter: string): Promise<unknown> => {
  const { resolution, resolved_by, resolved_reason, resolved_at } = (await posthorn.api.get(`${letters}/${letter}`))
    .body;
  return [resolution, resolved_by, resolved_reason, resolved_at !== null];
};

const resolution = async (letter: string): Promise<unknown> =>
  (await posthorn.api.get(`${letters}/${letter}`)).body.resolution;

describe('a dead letter', () => {
  it('shows the event byte for byte, the last answer, the endpoint, and the delivery with its workflow', async () => {
    const { id, endpointId, letter } = await givenLetter();
    const answer = await posthorn.api.get(`${letters}/${letter}`);
    expect(answer.status).toBe(200);
    const { body } = answer;
    expect(body).toEqual({
      id: letter,
      delivery_id: id,
      round: 1,
      event_id: expect.stringMatching(/^evt_/),
      endpoint_id: endpointId,
      type: 'letter.made',
      reason: 'attempts_exhausted',
      attempt_count: 1,
      last_status_code: 503,
      last_error: 'answered 503',
      created_at: expect.stringMatching(/Z$/),
      expires_at: expect.stringMatching(/Z$/),
      resolution: 'open',
      resolved_at: null,
      resolved_by: null,
      resolved_reason: null,
      last_response_headers: [
        ['content-type', 'text/plain'],
        ['x-a', '1'],
        ['x-a', '2'],
      ],
      last_response_body: 'no, thanks',
      event: {
        id: body.event_id,
        type: 'letter.made',
        created_at: expect.any(String),
        source: '/tests',
        subject: null,
        api_version: null,
        data_json: data,
      },
      delivery: expect.objectContaining({
        id,
        status: 'failed',
        workflow_url: `https://temporal.example.com/namespaces/none/workflows/${id}`,
      }),
    });
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeGreaterThanOrEqual(30 * 86_400_000);
    const listed = (await posthorn.api.get(`${letters}?endpoint_id=${endpointId}`)).body.data;
    expect(listed).toEqual([Object.fromEntries(Object.entries(body).slice(0, 16))]);
  });

  it('says so where the data were removed', async () => {
    const { letter, id } = await givenLetter();
    await posthorn.sql(
      `update events set data = null, payload_purged_at = now() where id = (select event_id from deliveries where id = $1)`,
      [id],
    );
    expect((await posthorn.api.get(`${letters}/${letter}`)).body.event.data_json).toBeNull();
  });

  it('is not found under an id that is none, of another round, or of another tenant', async () => {
    const { id, letter } = await givenLetter();
    const stranger = await posthorn.tenant('stranger');
    for (const path of [id, `${id}.2`, `${id}.0`, `${id}.01`, `${id}.1.1`, `${id}.99999999999`, 'x.1', '%00.1'])
      expect([path, (await posthorn.api.get(`${letters}/${path}`)).status]).toEqual([path, 404]);
    expect((await stranger.get(`${letters}/${letter}`)).status).toBe(404);
    for (const action of ['replay', 'discard'])
      expect(await stranger.post(`${letters}/${letter}/${action}`)).toMatchObject({
        status: 404,
        body: { code: 'not_found', detail: `There is no dead letter '${letter}'` },
      });
    expect((await stranger.get(letters)).body.data).toEqual([]);
    expect(await state(letter)).toEqual(['open', null, null, false]);
  });
});

describe('replay', () => {
  it('redelivers, and the success resolves the letter, with who asked and why', async () => {
    const { id, letter } = await givenLetter();
    const answer = await posthorn.api.post(`${letters}/${letter}/replay`, { reason: 'receiver is back' });
    expect(answer).toMatchObject({
      status: 202,
      body: { id, status: 'pending', round: 2, reason: 'redelivery_requested', already_in_progress: false },
    });
    // So long as nothing has come of it, it is open.
    expect(await state(letter)).toEqual(['open', null, null, false]);
    await attempt(id, 2, delivered);
    expect(await state(letter)).toEqual(['replayed', keyId, 'receiver is back', true]);
  });

  it('that fails again makes a newer letter, which is the only open one', async () => {
    const { id, endpointId, letter } = await givenLetter();
    await posthorn.api.post(`${letters}/${letter}/replay`);
    await attempt(id, 2, { statusCode: 500 });
    expect(await state(letter)).toEqual(['replayed', keyId, null, true]);
    expect(await state(`${id}.2`)).toEqual(['open', null, null, false]);
    const open = (await posthorn.api.get(`${letters}?endpoint_id=${endpointId}&resolution=open`)).body.data;
    expect(open.map((one: { id: string }) => one.id)).toEqual([`${id}.2`]);
    expect((await posthorn.api.get(`${letters}?endpoint_id=${endpointId}`)).body.data).toHaveLength(2);
  });

  it('that meets a disabled endpoint while it waits makes a newer letter, too', async () => {
    const { id, endpointId, letter } = await givenLetter();
    await posthorn.api.post(`${letters}/${letter}/replay`);
    await posthorn.sql(`update endpoints set status = 'disabled' where id = $1`, [endpointId]);
    await posthorn.core.waiting.closeAllOf(endpointId);
    expect(await resolution(letter)).toBe('replayed');
    expect(await resolution(`${id}.2`)).toBe('open');
  });

  it('asked for twice is one redelivery', async () => {
    const { id, letter } = await givenLetter();
    await posthorn.api.post(`${letters}/${letter}/replay`);
    expect((await posthorn.api.post(`${letters}/${letter}/replay`)).body).toMatchObject({
      already_in_progress: true,
      round: 2,
    });
    expect((await posthorn.api.delivery(id)).round).toBe(2);
  });

  it('is refused where the letter is resolved, or its endpoint takes nothing', async () => {
    const { id, endpointId, letter } = await givenLetter();
    await posthorn.sql(`update endpoints set status = 'paused' where id = $1`, [endpointId]);
    expect(await posthorn.api.post(`${letters}/${letter}/replay`)).toMatchObject({
      status: 409,
      body: { code: 'endpoint_unavailable' },
    });
    await posthorn.sql(`update endpoints set status = 'active' where id = $1`, [endpointId]);
    for (const how of ['replayed', 'expired', 'discarded']) {
      await posthorn.sql(`update dead_letters set resolution = $2, resolved_at = now() where delivery_id = $1`, [
        id,
        how,
      ]);
      const answer = await posthorn.api.post(`${letters}/${letter}/replay`);
      expect(answer.status).toBe(409);
      expect(answer.body.detail).toContain(how);
    }
    expect((await posthorn.api.delivery(id)).round).toBe(1);
  });

  it('by way of the delivery resolves its letter just so', async () => {
    const { id, letter } = await givenLetter();
    await posthorn.api.post(`${deliveries}/${id}/redeliver`, { reason: 'by hand' });
    await attempt(id, 2, delivered);
    expect(await state(letter)).toEqual(['replayed', keyId, 'by hand', true]);
  });
});

describe('discard', () => {
  it('keeps who decided so and why, once', async () => {
    const { id, letter } = await givenLetter();
    const answer = await posthorn.api.post(`${letters}/${letter}/discard`, { reason: 'a test' });
    expect(answer).toMatchObject({ status: 200, body: { id: letter, resolution: 'discarded', resolved_by: keyId } });
    expect(await state(letter)).toEqual(['discarded', keyId, 'a test', true]);
    expect((await posthorn.api.post(`${letters}/${letter}/discard`)).status).toBe(409);
    expect((await posthorn.api.post(`${letters}/${letter}/replay`)).status).toBe(409);
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'failed', round: 1 });
    // The delivery itself can still be sent again; the letter stays as it was decided.
    await posthorn.api.post(`${deliveries}/${id}/redeliver`);
    await attempt(id, 2, delivered);
    expect(await state(letter)).toEqual(['discarded', keyId, 'a test', true]);
  });

  it.each([{ reason: 'x'.repeat(501) }, { reason: 7 }, { why: 'no' }, []])(
    'refuses what it does not know: %j',
    async (body) => {
      const { letter } = await givenLetter();
      expect((await posthorn.api.post(`${letters}/${letter}/discard`, body)).status).toBe(422);
      expect(await state(letter)).toEqual(['open', null, null, false]);
    },
  );
});

describe('expiry', () => {
  it('resolves letters whose time is over, oldest first, but none that is being sent again', async () => {
    const late = [await givenLetter(), await givenLetter(), await givenLetter()];
    const early = await givenLetter();
    await posthorn.api.post(`${letters}/${late[2]!.letter}/replay`);
    for (const [n, { id }] of late.entries())
      await posthorn.sql(
        `update dead_letters set expires_at = now() - $2 * interval '1 minute' where delivery_id = $1`,
        [id, n + 1],
      );
    const expire = () => posthorn.core.letterLists.expireLetters(1);
    expect(await expire()).toBe(1);
    expect([await resolution(late[0]!.letter), await resolution(late[1]!.letter)]).toEqual(['open', 'expired']);
    expect([await expire(), await expire()]).toEqual([1, 0]);
    expect(await state(late[0]!.letter)).toEqual(['expired', null, null, true]);
    expect(await resolution(late[2]!.letter)).toBe('open');
    expect(await resolution(early.letter)).toBe('open');
    await attempt(late[2]!.id, 2, delivered);
    expect(await resolution(late[2]!.letter)).toBe('replayed');
  });
});

describe('the list of letters', () => {
  it('neither skips nor repeats any while others arrive, though all have the same time', async () => {
    const api = await posthorn.tenant('letters-arrive');
    const made: string[] = [];
    for (let n = 0; n < 7; n += 1) made.push((await givenLetter(api, `t.n${n}`)).letter);
    await posthorn.sql(`update dead_letters set created_at = now() where tenant_id = 'letters-arrive'`);
    const seen: string[] = [];
    let newest = '';
    let cursor: string | null = null;
    let last: string | null = null;
    for (let first = true; first || cursor !== null; first = false) {
      const { body } = await api.get(`${letters}?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      last = body.prev_cursor ?? last;
      cursor = body.next_cursor;
      newest = (await givenLetter(api, `t.new${seen.length}`)).letter;
    }
    expect(seen).toEqual(made.toReversed());
    const back: string[] = [];
    for (cursor = last; cursor !== null;) {
      const { body }: { body: { data: { id: string }[]; prev_cursor: string | null } } = await api.get(
        `${letters}?limit=2&cursor=${cursor}`,
      );
      back.unshift(...body.data.map(({ id }) => id));
      cursor = body.prev_cursor;
    }
    expect(back[0]).toBe(newest);
    expect(back.slice(4)).toEqual(made.toReversed().slice(0, 6));
  });
});

const kinds = (body: { data: { kind: string }[] }): string[] => body.data.map(({ kind }) => kind);

const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1_000);

describe('the timeline', () => {
  it('tells attempts, waits, rounds and what became of the letter, in order', async () => {
    const { id } = await given();
    const path = `${deliveries}/${id}/timeline`;
    const before = await posthorn.api.get(path);
    expect(before.body).toMatchObject({
      data: [
        { kind: 'published', round: 1 },
        { kind: 'wait', reason: 'published' },
      ],
      next_attempt: { number: 1, reason: 'published', because: expect.any(String) },
    });
    await posthorn.sql(`update deliveries set created_at = now() - interval '301 s' where id = $1`, [id]);
    await attempt(id, 1, { startedAt: ago(300), waitMs: 60_000 });
    expect((await posthorn.api.get(path)).body.next_attempt).toEqual({
      at: expect.stringMatching(/Z$/),
      number: 2,
      reason: 'attempt_failed',
      because: 'Attempt 1 failed (answered 503), and the schedule waits so long before the next one',
    });
    await attempt(id, 1, {
      startedAt: ago(240),
      responseHeaders: [['Retry-After', '7']],
      waitMs: 7_000,
    });
    await attempt(id, 1, { startedAt: ago(233) });
    await posthorn.sql(`update dead_letters set created_at = now() - interval '232 s' where delivery_id = $1`, [id]);
    await posthorn.api.post(`${deliveries}/${id}/redeliver`, { reason: 'try it' });
    await attempt(id, 2, { ...delivered, startedAt: ago(-1) });
    await posthorn.sql(`update dead_letters set resolved_at = now() + interval '2 s' where delivery_id = $1`, [id]);

    const { status, body } = await posthorn.api.get(path);
    expect(status).toBe(200);
    expect(kinds(body)).toEqual([
      'published',
      'attempt',
      'wait',
      'attempt',
      'wait',
      'attempt',
      'dead_lettered',
      'redelivery',
      'attempt',
      'succeeded',
      'letter_resolved',
    ]);
    expect(body.data[1]).toMatchObject({ number: 1, status_code: 503, error_code: 'http_status', duration_ms: 12 });
    expect([body.data[2].reason, body.data[4].reason]).toEqual(['attempt_failed', 'retry_after']);
    expect(body.data[6]).toMatchObject({ round: 1, reason: 'attempts_exhausted' });
    expect(body.data[7]).toMatchObject({ round: 2, by: keyId, note: 'try it' });
    expect(body.data[10]).toMatchObject({ resolution: 'replayed', by: keyId, note: 'try it' });
    expect([body.truncated, body.next_attempt]).toEqual([false, null]);
    const times: number[] = body.data.map(({ at }: { at: string }) => Date.parse(at));
    expect(times.toSorted((a, b) => a - b)).toEqual(times);
  });

  it('says that it is held, and by whom it was cancelled', async () => {
    const { id } = await given();
    await posthorn.sql(
      `update deliveries set status = 'held', reason = 'endpoint_paused', next_attempt_at = null where id = $1`,
      [id],
    );
    const held = (await posthorn.api.get(`${deliveries}/${id}/timeline`)).body;
    expect(held).toMatchObject({
      data: [{ kind: 'published' }, { kind: 'held', reason: 'endpoint_paused' }],
      next_attempt: null,
    });
    await posthorn.api.post(`${deliveries}/${id}/cancel`, { reason: 'not needed' });
    const cancelled = (await posthorn.api.get(`${deliveries}/${id}/timeline`)).body;
    expect(cancelled.data[1]).toMatchObject({ kind: 'held', reason: 'endpoint_paused', until: cancelled.data[2].at });
    expect(cancelled.data[2]).toMatchObject({
      kind: 'cancelled',
      reason: 'cancelled_by_request',
      by: keyId,
      note: 'not needed',
    });
  });

  it('is the tenant’s own', async () => {
    const { id } = await given();
    const stranger = await posthorn.tenant('stranger');
    expect((await stranger.get(`${deliveries}/${id}/timeline`)).status).toBe(404);
  });
});

describe('the link to the workflow', () => {
  it('is null where nobody told where the Web UI is', async () => {
    const plain = await startApi();
    try {
      const { id } = await given(plain.api);
      expect((await plain.api.delivery(id)).workflow_url).toBeNull();
    } finally {
      await plain.stop();
    }
  });
});
