import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventFilterToLike, eventTypeSubject, matchesEventFilter } from '../../../src/domain/event-type.js';
import { dumpDatabase, type RunningApi, startApi, withConnection } from '../../support/api.js';
import { jsonText, whitespace } from '../../support/json-text.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const url = 'http://127.0.0.1:9/hook';
const post = (body: unknown, headers?: Record<string, string>) => posthorn.api.post('/v1/events', body, headers);
const storedData = async (id: string): Promise<string | undefined> =>
  (await posthorn.sql<{ data: string }>('select data from events where id = $1', [id]))[0]?.data;

describe('an accepted event', () => {
  it('is answered with what was kept, and a delivery for each endpoint that wants it', async () => {
    const { id: endpointId } = await posthorn.api.createEndpoint(url, ['answer.shape']);
    const answer = await post({
      type: 'answer.shape',
      data: { a: 1 },
      id: 'shape-1',
      created_at: '2026-01-31T13:00:00.1234+01:00',
      source: '/billing',
      subject: 'inv_1',
      api_version: '2026-01-31',
    });
    expect(answer.status).toBe(202);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body).toEqual({
      id: 'shape-1',
      type: 'answer.shape',
      created_at: '2026-01-31T12:00:00.123Z',
      source: '/billing',
      subject: 'inv_1',
      api_version: '2026-01-31',
      tenant_id: 'default',
      deliveries: [{ id: expect.stringMatching(/^whd_[0-9A-Z]{26}$/), endpoint_id: endpointId, status: 'pending' }],
    });
    const { body: delivery } = await posthorn.api.get(`/v1/webhook-deliveries/${answer.body.deliveries[0].id}`);
    expect(delivery).toMatchObject({
      event_id: 'shape-1',
      endpoint_id: endpointId,
      type: 'answer.shape',
      status: 'pending',
      reason: 'published',
      round: 1,
      attempt_count: 0,
      workflow_id: delivery.id,
    });
    expect(Date.parse(delivery.next_attempt_at)).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  it('is committed by then: another connection sees it and its deliveries', async () => {
    await posthorn.api.createEndpoint(url, ['commit.seen']);
    await withConnection(posthorn.databaseUrl, async (other) => {
      for (let i = 0; i < 20; i++) {
        const { id } = await posthorn.api.publish('commit.seen', { i });
        const { rows } = await other.query(
          'select 1 from events v join deliveries d on d.event_id = v.id where v.id = $1',
          [id],
        );
        expect(rows).toHaveLength(1);
      }
    });
  });

  it('keeps its data byte for byte', async () => {
    const body = fc.tuple(whitespace, jsonText, whitespace);
    await fc.assert(
      fc.asyncProperty(body, async ([before, data, after]) => {
        const answer = await post(`{"type":"bytes.kept","data":${before}${data}${after}}`);
        expect(answer.status, answer.text).toBe(202);
        expect(await storedData(answer.body.id)).toBe(data);
      }),
      { numRuns: 300, interruptAfterTimeLimit: 30_000 },
    );
  });

  it('gets an id of its own when it brings none', async () => {
    const [a, b] = [await posthorn.api.publish('own.id'), await posthorn.api.publish('own.id')];
    expect(a.id).toMatch(/^evt_[0-9A-Z]{26}$/);
    expect(b.id > a.id).toBe(true);
  });
});

describe('a dry run', () => {
  it('says who would get the event, and stores nothing', async () => {
    const { id } = await posthorn.api.createEndpoint(`${url}/dry`, ['dry.*']);
    const before = await dumpDatabase(posthorn.databaseUrl);
    const body = '{"type":"dry.run","data":{"secret":"dry-run-payload"},"id":"dry-1"}';
    const answer = await posthorn.api.post('/v1/events?dry_run=true', body, { 'idempotency-key': 'dry-key' });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        dry_run: true,
        type: 'dry.run',
        tenant_id: 'default',
        endpoints: [{ endpoint_id: id, url: `${url}/dry` }],
      },
    });
    expect(await dumpDatabase(posthorn.databaseUrl)).toBe(before);
  });
});

describe('fan-out', () => {
  const cases: [filters: string[], wanted: string[], unwanted: string[]][] = [
    [
      ['fan.invoice.paid'],
      ['fan.invoice.paid'],
      ['fan.invoice', 'fan.invoice.paid.late', 'xfan.invoice.paid', 'fan.invoice.Paid'],
    ],
    [['fan.*'], ['fan.a', 'fan.b_c'], ['fan', 'fan.a.b', 'fanx.a']],
    [['fan.*.c'], ['fan.b.c'], ['fan.c', 'fan.b.b.c', 'fan.b.cc']],
    [['*.fan'], ['a.fan'], ['a.b.fan', 'fan']],
    [['*.*'], ['fan.two'], ['fan', 'fan.two.three']],
    [['*'], ['fan', 'fan.two', 'fan.two.three'], []],
    [['fan.a_b'], ['fan.a_b'], ['fan.axb', 'fan.a-b', 'fan.ab']],
    [['fan.one', 'fan.two'], ['fan.one', 'fan.two'], ['fan.three']],
  ];
  it.each(cases)('of %j', async (filters, wanted, unwanted) => {
    const { id } = await posthorn.api.createEndpoint(url, filters);
    const gets = async (type: string): Promise<boolean> => {
      const { deliveries } = await posthorn.api.publish(type);
      return deliveries.filter((delivery) => delivery.endpoint_id === id).length === 1;
    };
    for (const type of wanted) expect(await gets(type), type).toBe(true);
    for (const type of unwanted) expect(await gets(type), type).toBe(false);
    await posthorn.api.delete(`/v1/webhooks/subscriptions/${id}`);
  });

  it('reaches an endpoint once, however many of its filters match', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['once.a', 'once.*', '*.a', 'once.a']);
    const { deliveries } = await posthorn.api.publish('once.a');
    expect(deliveries.filter((delivery) => delivery.endpoint_id === id)).toHaveLength(1);
  });

  it('leaves out endpoints that are deleted, disabled or expired, and holds what waits for the others', async () => {
    const made = [];
    for (let i = 0; i < 6; i++) made.push(await posthorn.api.createEndpoint(url, ['left.out']));
    const [active, deleted, ...others] = made.map(({ id }) => id);
    await posthorn.api.delete(`/v1/webhooks/subscriptions/${deleted}`);
    const states = ['paused', 'pending_verification', 'disabled', 'expired'];
    for (const [i, status] of states.entries())
      await posthorn.sql('update endpoints set status = $2 where id = $1', [others[i], status]);
    const { body } = await posthorn.api.post('/v1/events', { type: 'left.out', data: {} });
    const deliveries: { endpoint_id: string; status: string }[] = body.deliveries;
    expect(new Map(deliveries.map(({ endpoint_id, status }) => [endpoint_id, status]))).toEqual(
      new Map([
        [active, 'pending'],
        [others[0], 'held'],
        [others[1], 'held'],
      ]),
    );
  });

  it('means the same in the database as in the domain', async () => {
    // Few letters, so that names often meet; _ and - are what LIKE could misread, % and \ can't be in a name.
    const segment = fc.string({ unit: fc.constantFrom('a', 'b', '_', '-'), minLength: 1, maxLength: 3 });
    const filter = fc
      .array(fc.oneof(segment, fc.constant('*')), { minLength: 1, maxLength: 5 })
      .map((parts) => parts.join('.'));
    const type = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('.'));
    // Types made from filters match often; the others hardly ever.
    const related = filter.chain((pattern) =>
      fc.tuple(
        fc.constant(pattern),
        fc.array(segment, { minLength: 5, maxLength: 5 }).map((names) =>
          pattern
            .split('.')
            .map((part, i) => (part === '*' ? names[i]! : part))
            .join('.'),
        ),
      ),
    );
    const pairs = fc.array(fc.oneof(related, fc.tuple(filter, type)), { minLength: 50, maxLength: 50 });
    let matches = 0;
    await fc.assert(
      fc.asyncProperty(pairs, async (given) => {
        const rows = await posthorn.sql<{ yes: boolean }>(
          'select v.subject like any (array[v.pattern]) as yes from unnest($1::text[], $2::text[]) with ordinality as v (subject, pattern, ord) order by ord',
          [given.map(([, name]) => eventTypeSubject(name)), given.map(([pattern]) => eventFilterToLike(pattern))],
        );
        const expected = given.map(([pattern, name]) => matchesEventFilter(pattern, name));
        matches += expected.filter(Boolean).length;
        expect(rows.map(({ yes }) => yes)).toEqual(expected);
      }),
      { numRuns: 200 },
    );
    expect(matches).toBeGreaterThan(1_000);
  });

  it('takes time that grows with the length of names only', async () => {
    const pattern = `${Array(60).fill('*').join('.')}.x`;
    await posthorn.api.createEndpoint(url, [pattern]);
    const started = performance.now();
    await posthorn.api.publish(Array(61).fill('a').join('.'));
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe('an event id', () => {
  it('that comes again with the same bytes gets the first answer again, and no second delivery', async () => {
    await posthorn.api.createEndpoint(url, ['again.same']);
    const body = '{"type":"again.same","data":{"n":1},"id":"again-1"}';
    const first = await post(body);
    expect(first.body.deliveries).toHaveLength(1);
    // What happened since does not change it: neither a new endpoint nor the delivery's end.
    await posthorn.api.createEndpoint(url, ['again.same']);
    await posthorn.api.post(`/v1/webhook-deliveries/${first.body.deliveries[0].id}/cancel`);
    const second = await post(body);
    expect(second.status).toBe(202);
    expect(second.body).toEqual(first.body);
    expect(await posthorn.sql('select 1 from deliveries where event_id = $1', ['again-1'])).toHaveLength(1);
  });

  it.each([
    ['other data', '{"type":"again.other","data":2,"id":"again-2"}'],
    ['another type', '{"type":"again.another","data":1,"id":"again-2"}'],
    ['other white space', '{"type":"again.other", "data":1,"id":"again-2"}'],
  ])('that comes again with %s is a conflict', async (_, body) => {
    expect((await post('{"type":"again.other","data":1,"id":"again-2"}')).status).toBe(202);
    const answer = await post(body);
    expect(answer).toMatchObject({
      status: 409,
      body: { code: 'event_id_conflict', field: 'id', detail: expect.stringContaining('again-2') },
    });
    expect(await storedData('again-2')).toBe('1');
  });

  it('that twenty publish at once makes one event', async () => {
    await posthorn.api.createEndpoint(url, ['at.once']);
    const body = '{"type":"at.once","data":{},"id":"at-once"}';
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(body)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await posthorn.sql('select 1 from deliveries where event_id = $1', ['at-once'])).toHaveLength(1);
  });

  it('that twenty publish at once with different data is accepted once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => post(`{"type":"at.odds","data":${n},"id":"at-odds"}`)),
    );
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    expect(statuses).toEqual([202, ...Array(19).fill(409)]);
    const winner = answers.findIndex(({ status }) => status === 202);
    expect(await storedData('at-odds')).toBe(String(winner));
  });
});
