import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi({
    extra: {
      POSTHORN_CATALOGUE_PAGE: 'on',
      POSTHORN_CATALOGUE_MAX_BYTES: '20000',
      POSTHORN_CATALOGUE_MAX_SCHEMA_BYTES: '2000',
      POSTHORN_CATALOGUE_TIMEOUT: '1s',
    },
  });
});
afterAll(() => posthorn.stop());

const put = (name: string, body: object, api: ApiClient = posthorn.api) =>
  api.call('PUT', `/v1/event-types/${name}`, body);
const schema = {
  type: 'object',
  required: ['invoice_id', 'amount'],
  properties: { invoice_id: { type: 'string' }, amount: { type: 'object', required: ['value'] } },
};
const oldSchema = {
  type: 'object',
  required: ['amount'],
  properties: { amount: { type: 'number' } },
  additionalProperties: false,
};
const example = { invoice_id: 'inv_1', amount: { value: 5, currency: 'EUR' } };
const twoVersions = (expression: string, more: object = {}) => ({
  versions: [
    { version: '2026-01-31', schema, examples: [example], conversions: { '2025-01-31': expression }, ...more },
    { version: '2025-01-31', schema: oldSchema },
  ],
});

const v = (fields: object) => ({ versions: [{ version: '2026-01-31', ...fields }] });
const page = (path: string) => fetch(`${posthorn.api.baseUrl}${path}`);

describe('an event type', () => {
  it('is registered, shown, replaced as a whole, and removed', async () => {
    const created = await put('life.begun', { description: 'It began.', payload: 'thin', pointers: ['/id'] });
    expect(created).toMatchObject({
      status: 201,
      body: {
        name: 'life.begun',
        tenant_id: 'default',
        payload: 'thin',
        pointers: ['/id'],
        versions: [],
        warnings: [],
      },
    });
    const replaced = await put('life.begun', { versions: [{ version: '2026-01-31', schema: { type: 'object' } }] });
    expect(replaced).toMatchObject({ status: 200, body: { description: null, payload: 'full' } });
    expect((await posthorn.api.get('/v1/event-types/life.begun')).body).toEqual(replaced.body);
    expect((await posthorn.api.get('/v1/event-types')).body.data[0]).toMatchObject({
      name: 'life.begun',
      versions: ['2026-01-31'],
    });
    expect((await posthorn.api.delete('/v1/event-types/life.begun')).status).toBe(204);
    expect((await posthorn.api.get('/v1/event-types/life.begun')).status).toBe(404);
    expect((await posthorn.api.delete('/v1/event-types/life.begun')).status).toBe(404);
  });

  it('belongs to its tenant', async () => {
    const [a, b] = await Promise.all([posthorn.tenant('a'), posthorn.tenant('b')]);
    await put('tenant.joined', { description: 'of a' }, a);
    expect((await b.get('/v1/event-types/tenant.joined')).status).toBe(404);
    expect((await b.delete('/v1/event-types/tenant.joined')).status).toBe(404);
    expect((await b.get('/v1/event-types')).body.data).toEqual([]);
    expect((await b.get('/v1/event-types/export')).body).toEqual({ event_types: [] });
    expect((await b.get('/v1/event-types?tenant_id=a')).status).toBe(403);
    expect((await posthorn.api.get('/v1/event-types/tenant.joined?tenant_id=a')).body.description).toBe('of a');
  });

  it('warns of a name that reads as a command, and of versions that no conversion leads to', async () => {
    expect((await put('invoice.pay', {})).body.warnings).toEqual([expect.stringContaining('reads as a command')]);
    expect((await put('invoice.paid', {})).body.warnings).toEqual([]);
    const { body } = await put('lost.found', { versions: [{ version: '2025-01-31' }, { version: '2026-01-31' }] });
    expect(body.warnings).toEqual([expect.stringContaining('from version 2026-01-31 of lost.found to 2025-01-31')]);
  });

  it('has lists that page through', async () => {
    const api = await posthorn.tenant('pages');
    const names = ['p.one', 'p.two', 'p.three', 'p.four', 'p.five'];
    for (const name of names) await put(name, {}, api);
    const first = (await api.get('/v1/event-types?limit=2')).body;
    const second = (await api.get(`/v1/event-types?limit=2&cursor=${first.next_cursor}`)).body;
    const third = (await api.get(`/v1/event-types?limit=2&cursor=${second.next_cursor}`)).body;
    const found = [...first.data, ...second.data, ...third.data].map(({ name }: { name: string }) => name);
    expect(found).toEqual(names.toReversed());
    expect(third.next_cursor).toBeNull();
  });
});

describe('an event type is refused with its place', () => {
  it.each<[string, string, object, string, string | RegExp]>([
    ['one word as name', 'invoice', {}, 'invalid_field', 'name'],
    ['capitals in the name', 'Invoice.Paid', {}, 'invalid_field', 'name'],
    ['an unknown field', 'x.y', { schemas: [] }, 'unknown_field', 'schemas'],
    ['a date that is none', 'x.y', { versions: [{ version: '2026-02-30' }] }, 'invalid_field', 'versions.0.version'],
    [
      'a version twice',
      'x.y',
      { versions: [{ version: '2026-01-31' }, { version: '2026-01-31' }] },
      'duplicate_field',
      'versions',
    ],
    ['thin without pointers', 'x.y', { payload: 'thin' }, 'missing_field', 'pointers'],
    ['a pointer that is none', 'x.y', { pointers: ['id'] }, 'invalid_field', 'pointers.0'],
    [
      'a schema that is none',
      'x.y',
      v({ schema: { type: 'nonsense' } }),
      'invalid_schema',
      'versions.2026-01-31.schema',
    ],
    ['a schema that is a text', 'x.y', v({ schema: 'object' }), 'invalid_field', 'versions.0.schema'],
    [
      'a remote reference',
      'x.y',
      v({ schema: { properties: { a: { $ref: 'http://127.0.0.1/s.json' } } } }),
      'invalid_schema',
      'versions.2026-01-31.schema.properties.a.$ref',
    ],
    [
      'a schema that is too large',
      'x.y',
      v({ schema: { description: 'x'.repeat(2_000) } }),
      'invalid_schema',
      'versions.2026-01-31.schema',
    ],
    [
      'an example that does not fit',
      'x.y',
      v({ schema, examples: [{ invoice_id: 1, amount: { value: 1 } }] }),
      'schema_mismatch',
      'versions.2026-01-31.examples.0/invoice_id',
    ],
    [
      'a conversion that is no JSONata',
      'x.y',
      twoVersions('{"amount": '),
      'invalid_conversion',
      'versions.2026-01-31.conversions.2025-01-31',
    ],
    [
      'a conversion whose result does not fit',
      'x.y',
      twoVersions('{"amount": "five"}'),
      'invalid_conversion',
      'versions.2026-01-31.conversions.2025-01-31',
    ],
    [
      'a conversion without examples',
      'x.y',
      twoVersions('{"amount": 1}', { examples: [] }),
      'invalid_conversion',
      'versions.2026-01-31.conversions.2025-01-31',
    ],
    [
      'a conversion that never ends',
      'x.y',
      twoVersions('($f := function($x){ $f($x) }; $f(1))'),
      'invalid_conversion',
      'versions.2026-01-31.conversions.2025-01-31',
    ],
    [
      'a conversion to nowhere',
      'x.y',
      v({ examples: [1], conversions: { '2024-01-31': '1' } }),
      'invalid_conversion',
      'versions.2026-01-31.conversions.2024-01-31',
    ],
    ['conversions by other names', 'x.y', v({ conversions: { old: '1' } }), 'invalid_field', 'versions.0.conversions'],
    ['more than there is room for', 'x.y', v({ examples: ['x'.repeat(20_000)] }), 'catalogue_full', /^undefined$/],
  ])('%s', async (_, name, body, code, field) => {
    const answer = await put(name, body);
    expect([answer.status, answer.body.code, String(answer.body.field)]).toEqual([
      422,
      code,
      typeof field === 'string' ? field : expect.stringMatching(field),
    ]);
    expect((await posthorn.api.get(`/v1/event-types/${name}`)).status).toBe(404);
  });
});

describe('a catalogue file', () => {
  const file = {
    event_types: [
      { name: 'file.opened', description: 'first' },
      { name: 'file.closed', ...twoVersions('{"amount": amount.value}') },
    ],
  };

  it('is imported, exported as it was, and imported again without a change', async () => {
    const api = await posthorn.tenant('files');
    const dry = await api.post('/v1/event-types/import?dry_run=true', file);
    expect(dry.body).toEqual({
      dry_run: true,
      created: ['file.opened', 'file.closed'],
      changed: [],
      unchanged: [],
      removed: [],
      kept: [],
      warnings: [],
    });
    expect((await api.get('/v1/event-types')).body.data).toEqual([]);
    expect((await api.post('/v1/event-types/import', file)).body).toMatchObject({
      dry_run: false,
      created: dry.body.created,
    });
    const exported = await api.get('/v1/event-types/export');
    expect(exported.text.endsWith('}\n')).toBe(true);
    expect((await api.post('/v1/event-types/import', exported.text)).body).toMatchObject({
      created: [],
      changed: [],
      unchanged: ['file.closed', 'file.opened'],
    });
    expect((await api.get('/v1/event-types/export')).text).toBe(exported.text);
  });

  it('says what would change, and removes only when asked to', async () => {
    const api = await posthorn.tenant('changes');
    await api.post('/v1/event-types/import', file);
    const other = { event_types: [{ name: 'file.closed', enforce: true, ...twoVersions('{"amount": 7}') }] };
    const changed = [{ name: 'file.closed', changes: ['enforce', 'versions.2026-01-31.conversions'] }];
    expect((await api.post('/v1/event-types/import?dry_run=true', other)).body).toMatchObject({
      changed,
      kept: ['file.opened'],
    });
    expect((await api.post('/v1/event-types/import?prune=true', other)).body).toMatchObject({
      changed,
      removed: ['file.opened'],
      kept: [],
    });
    expect((await api.get('/v1/event-types')).body.data).toMatchObject([{ name: 'file.closed', enforce: true }]);
  });

  it('is taken as a whole or not at all', async () => {
    const api = await posthorn.tenant('whole');
    const bad = {
      event_types: [
        ...file.event_types,
        { name: 'bad.made', versions: [{ version: '2026-01-31', schema: { type: 1 } }] },
      ],
    };
    expect((await api.post('/v1/event-types/import', bad)).body).toMatchObject({
      code: 'invalid_schema',
      field: 'event_types.2.versions.2026-01-31.schema',
    });
    expect((await api.get('/v1/event-types')).body.data).toEqual([]);
    const twice = { event_types: [file.event_types[0], file.event_types[0]] };
    expect((await api.post('/v1/event-types/import', twice)).body).toMatchObject({
      code: 'duplicate_field',
      field: 'event_types.1.name',
    });
  });
});

describe('the page of the catalogue', () => {
  it('is readable by everybody, without a script, and escapes what was written', async () => {
    const api = await posthorn.tenant('page');
    const nasty = `</code><script>alert("x")</script><img src=x onerror='y'>`;
    await put(
      'page.seen',
      {
        description: nasty,
        deprecated: true,
        deprecation: nasty,
        versions: [{ version: '2026-01-31', examples: [{ [nasty]: nasty }] }],
      },
      api,
    );
    const answer = await page('/catalogue/page');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    const html = await answer.text();
    expect(html).toContain('<h2><code>page.seen</code></h2>');
    expect(html).toContain('&lt;script&gt;');
    expect(html).not.toMatch(/<script|<img/);
    // The other tenants' are not on it.
    expect(html).not.toContain('tenant.joined');
    expect((await page('/catalogue')).status).toBe(200);
    expect((await page('/catalogue/nobody')).status).toBe(200);
    expect((await page('/catalogue/no%20tenant')).status).toBe(404);
  });

  it('is not there unless the configuration says so', async () => {
    const other = await startApi({ databaseUrl: posthorn.databaseUrl });
    try {
      expect((await fetch(`${other.api.baseUrl}/catalogue`)).status).toBe(404);
    } finally {
      await other.stop();
    }
  });
});
