import { afterAll, beforeAll, expect, it } from 'vitest';
import { RenditionStore } from '../../src/database/rendition-store.js';
import { type RunningApi, startApi } from '../support/api.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

it('keeps converted data once, as long as the event’s own data', async () => {
  const { id } = await posthorn.api.publish('kept.once', { a: 1 });
  const renditions = new RenditionStore(posthorn.core.db);
  const [first, second] = await Promise.all(
    ['{"b":1}', '{"b":2}'].map((data) => renditions.keep('default', id, '2025-01-31', data)),
  );
  // Whoever was first: both send the same.
  expect(first).toBe(second);
  expect(await renditions.keep('default', id, '2025-01-31', '{"b":3}')).toBe(first);
  expect(await renditions.find('other', id, '2025-01-31')).toBeNull();
  await posthorn.sql(`update events set accepted_at = now() - interval '31 days' where id = $1`, [id]);
  expect(await posthorn.core.retention.purge('payloads', null)).toMatchObject({ removed: 1 });
  expect(await posthorn.sql('select * from event_renditions')).toEqual([]);
  await renditions.keep('default', id, '2025-01-31', '{"b":4}');
  expect(await posthorn.sql('select * from event_renditions')).toEqual([]);
});
