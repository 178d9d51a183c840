import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../src/security/new-id.js';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let api: RunningApi;
let mine: ApiClient;
let other: ApiClient;

beforeAll(async () => {
  api = await startApi();
  [mine, other] = [await api.tenant('mine'), await api.tenant('other')];
});
afterAll(() => api.stop());

async function endpointWith(client: ApiClient, notices: number): Promise<string> {
  const { id } = await client.createEndpoint('https://hooks.example.com/in', ['a.b'], { owner_email: 'o@example.com' });
  for (let n = 0; n < notices; n++) {
    const type = n % 2 === 0 ? 'endpoint.failing' : 'endpoint.recovered';
    await api.core.notices.create(api.core.db.manager, { endpointId: id, type, episode: newId('msg_'), data: { n } });
  }
  return id;
}

describe('GET /v1/notices', () => {
  it('pages through the tenant’s notices, newest first, by endpoint and type', async () => {
    const id = await endpointWith(mine, 5);
    await endpointWith(mine, 2);
    await endpointWith(other, 1);
    const seen: number[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = `/v1/notices?limit=2&endpoint_id=${id}${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const { status, body } = await mine.get(page);
      expect(status).toBe(200);
      for (const notice of body.data) {
        expect(notice).toMatchObject({
          endpoint_id: id,
          mail: { status: 'none', to: 'o@example.com', error: 'mail is not configured' },
        });
        seen.push(notice.data.n);
      }
      cursor = body.next_cursor;
    }
    expect(seen).toEqual([4, 3, 2, 1, 0]);
    expect((await mine.get('/v1/notices')).body.data).toHaveLength(7);
    const recovered = await mine.get(`/v1/notices?type=endpoint.recovered&endpoint_id=${id}`);
    expect(recovered.body.data).toHaveLength(2);
  });

  it('shows nothing of another tenant', async () => {
    const id = await endpointWith(mine, 1);
    expect((await other.get(`/v1/notices?endpoint_id=${id}`)).body.data).toEqual([]);
    expect((await other.get('/v1/notices?tenant_id=mine')).status).toBe(403);
  });

  it.each(['type=endpoint.unknown', 'endpoint_id=%00', 'limit=0', 'cursor=x', 'status=sent', 'type=a&type=b'])(
    'refuses ?%s with 422',
    async (query) => {
      expect((await mine.get(`/v1/notices?${query}`)).status).toBe(422);
    },
  );
});
