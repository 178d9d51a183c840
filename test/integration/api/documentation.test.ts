import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

describe('a running API', () => {
  it('answers the same document that is in the repository, to everybody', async () => {
    const answer = await fetch(`${posthorn.api.baseUrl}/openapi.json`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('application/json');
    const file = new URL('../../../docs/reference/openapi.json', import.meta.url);
    expect(await answer.json()).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  });

  it('serves its documentation with all that the page needs', async () => {
    const base = `${posthorn.api.baseUrl}/docs`;
    const page = await fetch(base);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
    const html = await page.text();
    expect(html).toContain('<title>Posthorn API</title>');
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
    expect(assets.length).toBeGreaterThanOrEqual(4);
    for (const path of assets) {
      // As a browser resolves it, which stands at /docs and not at /docs/.
      const asset = await fetch(new URL(path, base));
      expect([path, asset.status]).toEqual([path, 200]);
      expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(100);
    }
    expect(assets.some((path) => path.endsWith('swagger-ui-bundle.js'))).toBe(true);
  });
});
