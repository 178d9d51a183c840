import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { judgeUrl, maxUrlLength, type AddressPolicy } from '../../src/delivery/address-policy.js';

const loopback = ['127.0.0.0/8', '::1/128'].map(parseCidr);
const strict: AddressPolicy = { allowHttp: 'off', allowedCidrs: [] };
const embedded: AddressPolicy = { allowHttp: 'loopback', allowedCidrs: loopback };

describe('a URL', () => {
  it.each([
    ['hooks.example.com/x', 'url_invalid'],
    ['', 'url_invalid'],
    ['/hook', 'url_invalid'],
    ['//example.com/hook', 'url_invalid'],
    ['https', 'url_invalid'],
    ['https:', 'url_host'],
    ['https://', 'url_host'],
    ['https:///hook', 'url_host'],
    ['https:example.com', 'url_host'],
    ['https://:443/', 'url_host'],
    ['https://?x=1', 'url_host'],
    ['https://..', 'url_host'],
    ['https://example.com:99999/', 'url_invalid'],
    ['https://example.com:0/', 'url_port'],
    [' https://example.com/', 'url_invalid'],
    ['https://example.com/ ', 'url_invalid'],
    ['https://example.com/a b', 'url_invalid'],
    ['https://exam\tple.com/', 'url_invalid'],
    ['https://example.com/\r\nHost: x', 'url_invalid'],
    ['https://example.com/\u0000', 'url_invalid'],
    ['https:\\\\example.com/', 'url_invalid'],
    ['https://example.com\\@inner/', 'url_invalid'],
    ['https://user:pw@example.com/', 'url_credentials'],
    ['https://user@example.com/', 'url_credentials'],
    ['https://@example.com/', 'url_credentials'],
    ['https://example.com@127.0.0.1/', 'url_credentials'],
    ['https://example.com/hook#part', 'url_fragment'],
    ['https://example.com/hook#', 'url_fragment'],
    ['http://example.com/', 'url_scheme'],
    ['HTTP://example.com/', 'url_scheme'],
    ['ftp://example.com/', 'url_scheme'],
    ['file:///etc/passwd', 'url_scheme'],
    ['gopher://example.com/', 'url_scheme'],
    ['javascript:alert(1)', 'url_scheme'],
    ['unix:///var/run/docker.sock', 'url_scheme'],
    ['ws://example.com/', 'url_scheme'],
  ])('%j is refused with %s and a message that shows an accepted one', (text, code) => {
    const judgement = judgeUrl(text, strict);
    expect(judgement).toMatchObject({ ok: false, code });
    expect(judgement).toHaveProperty('message', expect.stringContaining('https://hooks.example.com/posthorn'));
  });

  it.each([
    'https://example.com',
    'https://example.com./hook',
    'https://EXAMPLE.com:65535/Hook',
    'https://intranet/hook',
    'https://my_service.example.com/',
    'https://bücher.example/hook',
    'https://example.com/a/%2e%2E%2f/%00?x=%zz&y=a%20b&z=\\&at=a@b&q=?',
    `https://example.com/${'p'.repeat(2_000)}`,
    'https://example.com/?redirect=http://127.0.0.1/',
    'https://localhost/hook',
    'https://127.0.0.1.example.com/',
  ])('%s is accepted', (text) => {
    expect(judgeUrl(text, strict)).toMatchObject({ ok: true });
  });

  it('is sent exactly as it was written', () => {
    const text = 'https://example.com:8443/a/%2f;b=1/~c?x=%zz&y=a%20b&z=\\&at=a@b&q=?';
    expect(judgeUrl(text, strict)).toMatchObject({ ok: true, url: new URL(text) });
    expect(new URL(text).href).toBe(text);
  });

  it('has a length that counts after percent-encoding', () => {
    const longest = `https://example.com/${'p'.repeat(maxUrlLength - 20)}`;
    expect(judgeUrl(longest, strict)).toMatchObject({ ok: true });
    expect(judgeUrl(`${longest}p`, strict)).toMatchObject({ ok: false, code: 'url_too_long' });
    expect(judgeUrl(`https://example.com/${'ü'.repeat(1_000)}`, strict)).toMatchObject({ code: 'url_too_long' });
  });

  it('does not show credentials in its refusal', () => {
    expect(JSON.stringify(judgeUrl('https://user:s3cret@example.com/', strict))).not.toContain('s3cret');
  });
});

describe('http', () => {
  it.each([
    'http://localhost:8080/',
    'http://LOCALHOST/',
    'http://localhost./',
    'http://app.localhost/',
    'http://127.0.0.1/',
    'http://127.9.9.9/',
    'http://2130706433/',
    'http://[::1]:3000/',
    'http://[::ffff:127.0.0.1]/',
  ])('to this machine (%s) is accepted under loopback', (text) => {
    expect(judgeUrl(text, embedded)).toMatchObject({ ok: true });
  });

  it.each([
    'http://example.com/',
    'http://8.8.8.8/',
    'http://localhost.example.com/',
    'http://notlocalhost/',
    'http://[2606:4700::1]/',
  ])('elsewhere (%s) is refused under loopback', (text) => {
    expect(judgeUrl(text, embedded)).toMatchObject({ ok: false, code: 'url_scheme' });
  });

  it('under loopback still needs the address to be excepted', () => {
    expect(judgeUrl('http://127.0.0.1/', { allowHttp: 'loopback', allowedCidrs: [] })).toMatchObject({
      code: 'url_address',
    });
  });

  it('is accepted everywhere when it is on', () => {
    expect(judgeUrl('http://example.com/', { allowHttp: 'on', allowedCidrs: [] })).toMatchObject({ ok: true });
    expect(judgeUrl('http://8.8.8.8/', { allowHttp: 'on', allowedCidrs: [] })).toMatchObject({ ok: true });
  });
});
