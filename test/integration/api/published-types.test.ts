import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const put = (name: string, body: object) => posthorn.api.call('PUT', `/v1/event-types/${name}`, body);
const schema = {
  type: 'object',
  required: ['amount'],
  properties: { amount: { type: 'integer' }, note: { maxLength: 3 } },
};
const enforced = { enforce: true, versions: [{ version: '2025-01-31' }, { version: '2026-01-31', schema }] };

describe('an event of an enforced type', () => {
  beforeAll(() => put('order.placed', enforced));

  it('is accepted where it fits, and says its version', async () => {
    const answer = await posthorn.api.post('/v1/events', { type: 'order.placed', data: { amount: 5 } });
    expect(answer).toMatchObject({ status: 202, body: { api_version: '2026-01-31' } });
    expect((await posthorn.api.get(`/v1/events/${answer.body.id}`)).body.api_version).toBe('2026-01-31');
  });

  const misfit = { type: 'order.placed', data: { amount: 'x', note: 'long' } };

  it('is refused where it does not, with the places in the data and in the schema', async () => {
    const problem = {
      code: 'schema_mismatch',
      field: 'data/amount',
      errors: [
        { field: 'data/amount', detail: 'must be integer (schema: #/properties/amount/type)' },
        { field: 'data/note', detail: expect.stringContaining('#/properties/note/maxLength') as string },
      ],
    };
    for (const path of ['/v1/events', '/v1/events?dry_run=true'])
      expect(await posthorn.api.post(path, misfit)).toMatchObject({ status: 422, body: problem });
    const batch = await posthorn.api.post('/v1/events/batch', {
      events: [misfit, { type: 'order.placed', data: { amount: 1 } }, { type: 'other.thing', data: 1 }],
    });
    expect(batch.body.data).toMatchObject([
      { index: 0, status: 422, error: problem },
      { index: 1, status: 202 },
      { index: 2, status: 202 },
    ]);
  });

  it('is judged by the version that it names, which has to be there', async () => {
    const event = { ...misfit, api_version: '2025-01-31' };
    expect(await posthorn.api.post('/v1/events', event)).toMatchObject({
      status: 202,
      body: { api_version: '2025-01-31' },
    });
    expect(await posthorn.api.post('/v1/events', { ...misfit, api_version: '2024-01-31' })).toMatchObject({
      status: 422,
      body: { code: 'invalid_field', field: 'api_version' },
    });
  });

  it('is answered as the first time when it is repeated, whatever was registered since', async () => {
    await put('order.changed', { versions: [{ version: '2026-01-31', schema }] });
    const send = () =>
      posthorn.api.post('/v1/events', { type: 'order.changed', data: {} }, { 'idempotency-key': 'before' });
    const first = await send();
    expect(first.status).toBe(202);
    await put('order.changed', { enforce: true, versions: [{ version: '2026-01-31', schema }] });
    const again = await send();
    expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([202, first.text, 'true']);
    expect((await posthorn.api.post('/v1/events', { type: 'order.changed', data: {} })).status).toBe(422);
  });

  it('is refused, and nothing else waits, where its schema takes too long', async () => {
    await put('slow.checked', { enforce: true, versions: [{ version: '2026-01-31', schema: { pattern: '^(a+)+$' } }] });
    const bad = { type: 'slow.checked', data: `${'a'.repeat(60)}!` };
    const [slow, quick] = await Promise.all([
      posthorn.api.post('/v1/events', bad),
      posthorn.api.post('/v1/events', { type: 'quick.one', data: 1 }),
    ]);
    expect(quick.status).toBe(202);
    expect(slow).toMatchObject({
      status: 422,
      body: { code: 'schema_mismatch', detail: expect.stringContaining('ms') as string },
    });
  });
});

describe('where only registered types are accepted', () => {
  it('refuses others, alone, in a batch and in a dry run', async () => {
    const strict = await startApi({ extra: { POSTHORN_CATALOGUE_REQUIRED: 'on' } });
    try {
      await strict.api.call('PUT', '/v1/event-types/known.one', {});
      const unknown = { type: 'unknown.one', data: {} };
      const refused = { status: 422, body: { code: 'unregistered_type', field: 'type' } };
      expect(await strict.api.post('/v1/events', unknown)).toMatchObject(refused);
      expect(await strict.api.post('/v1/events?dry_run=true', unknown)).toMatchObject(refused);
      const batch = await strict.api.post('/v1/events/batch', { events: [unknown, { type: 'known.one', data: {} }] });
      expect(batch.body).toMatchObject({ accepted: 1, rejected: 1 });
      // Registered by this process, it counts at once.
      await strict.api.call('PUT', '/v1/event-types/unknown.one', {});
      expect((await strict.api.post('/v1/events', unknown)).status).toBe(202);
    } finally {
      await strict.stop();
    }
  });
});

describe('a time limit that is set', () => {
  it('ends what takes longer, and is named', async () => {
    const strict = await startApi({ extra: { POSTHORN_CATALOGUE_TIMEOUT: '150ms' } });
    try {
      const slow = { enforce: true, versions: [{ version: '2026-01-31', schema: { pattern: '^(a+)+$' } }] };
      await strict.api.call('PUT', '/v1/event-types/slow.checked', slow);
      expect(await strict.api.post('/v1/events', { type: 'slow.checked', data: `${'a'.repeat(60)}!` })).toMatchObject({
        status: 422,
        body: { detail: expect.stringContaining('150 ms') as string },
      });
    } finally {
      await strict.stop();
    }
  });
});
