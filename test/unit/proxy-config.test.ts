import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.js';

const load = (env: Record<string, string>) => loadConfig('standalone', env).delivery.proxy;
const url = (text: string, more: Record<string, string> = {}) => load({ POSTHORN_DELIVERY_PROXY_URL: text, ...more });

describe('POSTHORN_DELIVERY_PROXY_URL', () => {
  it('names a proxy, by http or https, with credentials or without; by default there is none', () => {
    expect(load({})).toBeNull();
    expect(url('http://proxy.internal:3128')).toEqual({
      tls: false,
      host: 'proxy.internal',
      port: 3128,
      authorization: null,
      resolves: false,
    });
    expect(url('https://us%40er:p%3Aa@[fd00::1]/', { POSTHORN_DELIVERY_PROXY_RESOLVES: 'on' })).toEqual({
      tls: true,
      host: 'fd00::1',
      port: 443,
      authorization: `Basic ${Buffer.from('us@er:p:a').toString('base64')}`,
      resolves: true,
    });
  });

  it.each([
    'proxy.internal:3128',
    'socks5://secret@proxy.internal',
    'http://',
    'http://secret@proxy.internal/path',
    'http://secret@proxy.internal/?a',
    'http://user:%FFsecret@proxy.internal',
    'http://secret@proxy.internal:0',
  ])('that is none is refused at the start, without a word of it: %s', (text) => {
    expect(() => url(text)).toThrow(/POSTHORN_DELIVERY_PROXY_URL: must be a URL such as/);
    expect(() => url(text)).not.toThrow(/secret/);
  });

  it('has to be there where something is said about it', () => {
    expect(() => load({ POSTHORN_DELIVERY_PROXY_RESOLVES: 'on' })).toThrow(/POSTHORN_DELIVERY_PROXY_RESOLVES/);
  });
});
