import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { judgeUrl, type AddressPolicy } from '../../src/delivery/address-policy.js';
import { newClient, post } from '../integration/delivery-client/harness.js';
import { asRequest, calls, hasIpv6, useCanary } from './canary.js';
import { oddAnswers, spellings } from './spellings.js';

const strict: AddressPolicy = { allowHttp: 'off', allowedCidrs: [] };
/** Only the judgement of addresses stands between a call and the canary. */
const httpToo: AddressPolicy = { allowHttp: 'on', allowedCidrs: [] };
const policies = [
  { scheme: 'https', policy: strict },
  { scheme: 'http', policy: httpToo },
] as const;
const refused = { statusCode: null, errorCode: 'blocked_address', dialled: false, remoteAddress: null };

const canary = useCanary('spellings');

describe('the canary', () => {
  it.each(['127.0.0.1', '2130706433', '127.8.16.32', ...(hasIpv6 ? ['[::1]'] : [])])(
    'sees a call to %s where loopback is excepted, so that its silence means something',
    async (host) => {
      const before = canary.connections;
      const client = newClient({ allowHttp: 'on', allowedCidrs: ['127.0.0.0/8', '::1/128'].map(parseCidr) });
      const answer = await client.send(post(`http://${host}:${canary.port}/`));
      canary.meant();
      expect(answer).toMatchObject({ statusCode: 200, dialled: true });
      expect(canary.connections).toBe(before + 1);
      expect(canary.dials).toBe(1);
    },
  );

  it('sees a call to a name that comes to loopback, where that is excepted', async () => {
    const before = canary.connections;
    const answer = await newClient().send(post(`http://inner.test:${canary.port}/`));
    canary.meant();
    expect(answer).toMatchObject({ statusCode: 200 });
    expect(canary.connections).toBe(before + 1);
  });
});

describe('an address inside', () => {
  it('is written in at least 200 ways', () => {
    expect(spellings.length).toBeGreaterThanOrEqual(200);
  });

  it.each(spellings)('as $host ($how) is refused when it is written, and is not called', async ({ host, address }) => {
    const before = canary.connections;
    for (const { scheme, policy } of policies) {
      const url = `${scheme}://${host}:${canary.port}/hook`;
      expect(judgeUrl(url, policy)).toMatchObject({ ok: false, code: 'url_address' });
      canary.judged();
      const asked: string[] = [];
      const client = newClient({
        ...policy,
        resolve: async (name) => {
          asked.push(name);
          return [{ address, family: 0 }];
        },
      });
      for (const call of calls) {
        expect(await client.send(post(url, asRequest(call)))).toMatchObject(refused);
        canary.called();
      }
      expect(asked).toEqual([]);
      for (const call of calls) {
        const named = post(`${scheme}://inner.test:${canary.port}/hook`, asRequest(call));
        expect(await client.send(named)).toMatchObject(refused);
        canary.called();
      }
      expect(asked).toEqual(['inner.test']);
    }
    expect(canary.dials).toBe(0);
    expect(canary.connections).toBe(before);
  });

  it.each(oddAnswers)("is not called as the resolver's answer '%s'", async (address) => {
    const before = canary.connections;
    for (const { scheme, policy } of policies) {
      const client = newClient({ ...policy, resolve: async () => [{ address, family: 4 }] });
      const answer = await client.send(post(`${scheme}://inner.test:${canary.port}/`));
      expect(answer).toMatchObject(refused);
      canary.called();
    }
    expect(canary.dials).toBe(0);
    expect(canary.connections).toBe(before);
  });
});
