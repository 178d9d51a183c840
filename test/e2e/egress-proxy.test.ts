import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ForwardProxy, type ProxyManner, startForwardProxy } from '../support/forward-proxy.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { TokenServer } from '../support/token-server.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
let tokens: TokenServer;
let proxy: ForwardProxy;

beforeAll(async () => {
  proxy = await startForwardProxy();
  posthorn = await startPosthorn({
    extra: { POSTHORN_DELIVERY_PROXY_URL: `http://user:proxy-password-that-stays-out@127.0.0.1:${proxy.port}` },
  });
  receiver = await RecordingReceiver.start();
  tokens = await TokenServer.start();
});
afterAll(async () => {
  await posthorn.stop();
  await tokens.stop();
  await receiver.stop();
  await proxy.close();
});

describe('with an egress proxy', () => {
  it('deliveries, pings and requests for tokens go through it', async () => {
    const { api } = posthorn;
    const credentials = {
      type: 'oauth2_client_credentials',
      token_url: tokens.url,
      client_id: 'posthorn',
      client_secret: 'secret',
    };
    const { id } = await api.createEndpoint(`${receiver.url}/all`, ['all.calls'], { credentials });
    const { deliveries } = await api.publish('all.calls');
    expect(await api.delivery(deliveries[0]!.id, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect((await api.post(`/v1/webhooks/subscriptions/${id}/ping`)).body).toMatchObject({ delivered: true });
    expect(new Set(proxy.targets)).toEqual(new Set([new URL(receiver.url).host, new URL(tokens.url).host]));
    for (const head of proxy.requests) expect(head).toContain('Proxy-Authorization: Basic ');
    expect(JSON.stringify(receiver.requests.map(({ headers }) => headers))).not.toMatch(/proxy/i);
  });

  it.each<ProxyManner | 'refuse'>(['refuse', 'hang', 'ask_for_password', 'bad_gateway', 'close_midway', 'garbage'])(
    'that fails by %s nothing is sent and no attempt is spent; it is delivered once the proxy is well',
    async (manner) => {
      const { api } = posthorn;
      // Kept tunnels would go on.
      const { port } = proxy;
      await proxy.close();
      if (manner !== 'refuse') {
        proxy = await startForwardProxy({ port });
        proxy.manner = manner;
      }
      const settings = { timeout_ms: 1_000, retry_waits_ms: [86_400_000] };
      const { id: endpointId } = await api.createEndpoint(`${receiver.url}/${manner}`, [`${manner}.seen`], settings);
      const { deliveries } = await api.publish(`${manner}.seen`);
      const id = deliveries[0]!.id;
      const client = posthorn.core.temporal.client!;
      await until('the workflow waits to send it again', async () => {
        const state = await client.workflow.getHandle(id).query<{ phase: string; attempts: number }>('state');
        return state.phase === 'waiting' && state.attempts === 0;
      });
      expect(await api.delivery(id)).toMatchObject({ status: 'pending', attempt_count: 0, last_error: null });
      expect(receiver.of(id)).toEqual([]);
      const ping = await api.post(`/v1/webhooks/subscriptions/${endpointId}/ping`);
      expect(ping.text).not.toContain('proxy-password');
      if (manner === 'refuse') proxy = await startForwardProxy({ port });
      proxy.manner = 'tunnel';
      expect(
        await until('it is delivered', async () => {
          const delivery = await api.delivery(id);
          return delivery.status === 'succeeded' && delivery;
        }),
      ).toMatchObject({ attempt_count: 1 });
      expect(receiver.of(id)).toHaveLength(1);
      expect(await api.attempts(id)).toMatchObject([{ number: 1, status_code: 200, error_code: null, resent: false }]);
    },
  );
});
