import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { judgeAddress, judgeUrl, type AddressPolicy } from '../../src/delivery/address-policy.js';

const strict: AddressPolicy = { allowHttp: 'off', allowedCidrs: [] };

const allowing = (...blocks: string[]) => ({ allowedCidrs: blocks.map(parseCidr) });

/** Hosts as somebody might write them into a URL, by what they come to. */
// prettier-ignore
const refusedHosts: Readonly<Record<string, readonly string[]>> = {
  'IPv4 loopback': [
    '127.0.0.1', '127.0.0.1.', '127.1', '127.0.1', '127.1.2.3', '127.255.255.255', '2130706433', '0x7f000001',
    '0x7F.0.0.1', '0x7f.1', '0x7f.0x0.0x0.0x1', '017700000001', '0177.0.0.1', '0177.1', '0177.0x0.0.1',
    '00000177.0.0.1', '127.0.0.0x1', '127.0x0.01', '127.000.000.001', '%31%32%37.0.0.1', '127%2e0%2e0%2e1',
    '１２７.０.０.１', '127。0。0。1', '127．0．0．1', '127｡0｡0｡1', '①②⑦.⓪.⓪.①', '0x7f.0.0.1.', '2130706433.',
    '0x000000000000007f.1', '127.16777215', '127.0.65535', '0x7fffffff',
  ],
  'IPv4 unspecified and this network': [
    '0', '0.0.0.0', '0x0', '00', '0.0', '0.0.0', '0.1.2.3', '0.255.255.255', '000.000.000.000', '1', '0x1',
  ],
  'IPv4 private': [
    '10.0.0.0', '10.0.0.1', '10.1', '10.255.255.255', '0xa.0.0.1', '012.0.0.1', '167772161', '0x0a000001',
    '172.16.0.0', '172.16.0.1', '172.20.10.1', '172.31.255.255', '0xac.0x10.0.1', '2886729729', '192.168.0.0',
    '192.168.1.1', '192.168.257', '192.11010305', '192.168.255.255', '3232235777', '0xc0a80101', '0300.0250.1.1',
    '030052000401', '１０.0.0.1',
  ],
  'IPv4 link-local, where clouds keep their credentials': [
    '169.254.169.254', '169.254.0.1', '169.254.255.255', '2852039166', '0xa9fea9fe', '0xA9.0xFE.0xA9.0xFE',
    '0251.0376.0251.0376', '025177524776', '169.254.43518', '169.16689662', '0251.254.169.254', '169.254.169.254.',
    '169.254.170.2', '①⑥⑨.254.169.254',
  ],
  'IPv4 shared': ['100.64.0.0', '100.64.0.1', '100.100.100.200', '100.127.255.255', '0x64.0x40.1', '1681915905'],
  'IPv4 benchmarking': ['198.18.0.0', '198.18.0.1', '198.19.255.255', '0xc6.0x12.0.1'],
  'IPv4 documentation': [
    '192.0.2.0', '192.0.2.1', '192.0.2.255', '198.51.100.1', '198.51.100.255', '203.0.113.0', '203.0.113.255',
    '0xcb007101',
  ],
  'IPv4 protocol assignments, relays and sinks': [
    '192.0.0.1', '192.0.0.8', '192.0.0.170', '192.0.0.192', '192.0.0.255', '192.88.99.1', '192.31.196.1',
    '192.52.193.1', '192.175.48.1', '168.63.129.16',
  ],
  'IPv4 multicast': [
    '224.0.0.0', '224.0.0.1', '224.0.0.251', '232.1.2.3', '239.255.255.250', '239.255.255.255', '0xe0000001',
  ],
  'IPv4 reserved and broadcast': [
    '240.0.0.0', '240.0.0.1', '250.1.2.3', '255.255.255.254', '255.255.255.255', '4294967295', '0xffffffff',
    '037777777777',
  ],
  'IPv6 loopback and unspecified': [
    '[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000:0000:0000:0000:0000:0000:0001]', '[::0001]', '[0::1]', '[::0:1]',
    '[0:0::0:1]', '[::]', '[0::0]', '[0:0:0:0:0:0:0:0]', '[::0.0.0.1]', '[::0.0.0.0]',
  ],
  'IPv4-mapped': [
    '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::FFFF:127.0.0.1]', '[0:0:0:0:0:ffff:127.0.0.1]',
    '[0:0:0:0:0:ffff:7f00:0001]', '[::ffff:10.0.0.1]', '[::ffff:a00:1]', '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]', '[::ffff:192.168.1.1]', '[::ffff:c0a8:101]', '[::ffff:172.16.0.1]', '[::ffff:0.0.0.0]',
    '[::ffff:0:0]', '[::ffff:100.64.0.1]', '[::ffff:255.255.255.255]', '[::ffff:224.0.0.1]', '[::ffff:198.18.0.1]',
    '[::ffff:203.0.113.7]', '[::ffff:168.63.129.16]',
  ],
  'IPv4-compatible': [
    '[::127.0.0.1]', '[::7f00:1]', '[::10.0.0.1]', '[::169.254.169.254]', '[::a9fe:a9fe]', '[::8.8.8.8]',
    '[::808:808]', '[0:0:0:0:0:0:127.0.0.1]', '[::2]', '[::ffff]',
  ],
  'IPv4-translated': ['[::ffff:0:127.0.0.1]', '[::ffff:0:7f00:1]', '[::ffff:0:8.8.8.8]', '[0:0:0:0:ffff:0:10.0.0.1]'],
  'NAT64 around something inner': [
    '[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::10.0.0.1]', '[64:ff9b::169.254.169.254]',
    '[64:ff9b::a9fe:a9fe]', '[64:ff9b::192.168.0.1]', '[64:ff9b::0.0.0.0]', '[64:ff9b::]', '[64:ff9b::224.0.0.1]',
    '[0064:ff9b:0:0:0:0:7f00:0001]', '[64:ff9b::100.64.0.1]', '[64:ff9b::168.63.129.16]',
  ],
  'NAT64 with a prefix of the network’s own': [
    '[64:ff9b:1::]', '[64:ff9b:1::127.0.0.1]', '[64:ff9b:1::8.8.8.8]', '[64:ff9b:1:a00:0:100::]',
    '[64:ff9b:1:ffff:ffff:ffff:ffff:ffff]',
  ],
  '6to4': [
    '[2002::]', '[2002:7f00:1::]', '[2002:7f00:0001::1]', '[2002:a00:1::1]', '[2002:a9fe:a9fe::]',
    '[2002:c0a8:101::1]', '[2002:808:808::1]',
  ],
  Teredo: ['[2001::]', '[2001:0:4136:e378:8000:63bf:80ff:fffe]', '[2001:0000:7f00:1::]', '[2001:0:0:0:0:0:f5ff:fffe]'],
  ISATAP: [
    '[2606:4700::5efe:127.0.0.1]', '[2606:4700::5efe:a00:1]', '[2606:4700::200:5efe:10.0.0.1]',
    '[2606:4700:0:0:200:5efe:c0a8:101]',
  ],
  'IPv6 link-local and site-local': [
    '[fe80::]', '[fe80::1]', '[fe80::a9fe:a9fe]', '[FE80::1]', '[fe90::1]', '[febf:ffff::1]', '[fec0::1]',
    '[feff::1]',
  ],
  'IPv6 unique-local': [
    '[fc00::]', '[fc00::1]', '[fd00::1]', '[fd00:ec2::254]', '[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]',
    '[FD12:3456::1]',
  ],
  'IPv6 multicast': [
    '[ff00::]', '[ff02::1]', '[ff02::fb]', '[ff05::2]', '[ff0e::1]', '[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]',
  ],
  'IPv6 documentation, benchmarking, discard and other special blocks': [
    '[2001:db8::]', '[2001:db8::1]', '[2001:DB8:ffff::1]', '[3fff::1]', '[3fff:fff::1]', '[2001:2::1]',
    '[2001:3::1]', '[2001:4:112::1]', '[2001:10::1]', '[2001:20::1]', '[2001:30::1]', '[2001:1::1]',
    '[2620:4f:8000::1]', '[100::]', '[100::1]', '[5f00::1]', '[3ffe::1]',
  ],
  'IPv6 outside global unicast': [
    '[1::1]', '[200::1]', '[400::1]', '[1fff::1]', '[4000::1]', '[8000::1]', '[a000::1]', '[e000::1]', '[f000::1]',
    '[fe00::1]', '[0:1::1]', '[64:ff9a::1]', '[64:ff9b:2::1]',
  ],
};

// prettier-ignore
const allowedHosts = [

  '1.1.1.1', '8.8.8.8', '8.8.8.8.', '134744072', '0x08080808', '010.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.1',
  '169.253.255.255', '169.255.0.1', '172.15.255.255', '172.32.0.0', '192.0.1.1', '192.0.3.1', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.1',
  '203.0.112.1', '203.0.114.1', '223.255.255.255', '168.63.129.15', '[2606:4700:4700::1111]', '[2001:4860:4860::8888]', '[2001:200::1]', '[2a00:1450::1]', '[2003::1]', '[2c00::1]',
  '[3000::1]', '[::ffff:8.8.8.8]', '[::ffff:808:808]', '[64:ff9b::8.8.8.8]', '[64:ff9b::808:808]', '[2606:4700::5efe:8.8.8.8]',
];

// prettier-ignore
const invalidHosts = [

  '256.1.1.1', '1.2.3.4.5', '127.0.0.256', '4294967296', '0x100000000', '127.0.0.08', '0xzz.1', '1.2.3.09', 'example.0x7f', '[::1', '::1', '[::1%25lo]', '[fe80::1%25eth0]',
  '[fe80::1%eth0]', '[::ffff:127.0.0.256]', '[::ffff:127.1]', '[1:2:3:4:5:6:7:8:9]', '[1::2::3]', '[127.0.0.1]', '[]', '[::g]', 'a..example.com', '.example.com', '*.example.com', 'exa mple.com',
  'example.com..', `${'a'.repeat(64)}.example.com`, `${'a.'.repeat(130)}com`,
];

const rows = Object.entries(refusedHosts).flatMap(([kind, hosts]) => hosts.map((host) => [host, kind] as const));

describe('a numeric host', () => {
  it('is tried in at least 200 spellings', () => {
    expect(new Set(rows.map(([host]) => host)).size).toBeGreaterThanOrEqual(200);
  });

  it.each(rows)('%s (%s) is refused when it is written, whatever the scheme', (host) => {
    for (const allowHttp of ['off', 'loopback', 'on'] as const) {
      for (const scheme of ['https', 'http']) {
        const url = `${scheme}://${host}:8443/hook`;
        expect(judgeUrl(url, { allowHttp, allowedCidrs: [] })).toMatchObject({ ok: false, code: 'url_address' });
      }
    }
  });

  it.each(rows)('%s (%s) is refused when it is dialled', (host) => {
    const text = new URL(`https://${host}`).hostname.replace(/^\[|\]$/g, '');
    expect(judgeAddress(text, strict)).toMatchObject({ ok: false });
  });

  it.each(allowedHosts)('%s is a public address', (host) => {
    expect(judgeUrl(`https://${host}/hook`, strict)).toMatchObject({ ok: true });
  });

  it.each(invalidHosts)('%s is no host at all', (host) => {
    expect(judgeUrl(`https://${host}/hook`, strict)).toMatchObject({ ok: false });
  });
});

describe('an address that a resolver answers', () => {
  it.each([
    '',
    ' ',
    'localhost',
    '127.1',
    '0177.0.0.1',
    '2130706433',
    '127.0.0.1 ',
    '8.8.8.8/32',
    'fe80::1%eth0',
    '2606:4700::1%1',
    '[::1]',
    '::ffff:127.0.0.1%lo',
    '1.2.3',
  ])("'%s' is refused, since it is not exactly one address", (text) => {
    expect(judgeAddress(text, { allowedCidrs: [parseCidr('0.0.0.0/0'), parseCidr('::/0')] })).toMatchObject({
      ok: false,
    });
  });

  it('is dialled as it was judged', () => {
    expect(judgeAddress('::ffff:8.8.8.8', strict)).toEqual({ ok: true, address: '8.8.8.8', loopback: false });
    expect(judgeAddress('2606:4700:0:0::1111', strict)).toEqual({
      ok: true,
      address: '2606:4700::1111',
      loopback: false,
    });
    expect(judgeAddress('::8.8.8.8', strict)).toEqual({ ok: false, kind: 'IPv4-compatible' });
  });

  it('passes as IPv6 carrier only if what it carries passes', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const text = octets.join('.');
        const plain = judgeAddress(text, strict).ok;
        expect(judgeAddress(`::ffff:${text}`, strict).ok).toBe(plain);
        expect(judgeAddress(`64:ff9b::${text}`, strict).ok).toBe(plain);
        expect(judgeAddress(`::${text}`, strict).ok).toBe(false);
        expect(judgeAddress(`64:ff9b:1::${text}`, strict).ok).toBe(false);
      }),
    );
  });

  it('is judged without ever throwing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4Extended(), fc.ipV6()), (text) => void judgeAddress(text, strict)),
    );
    fc.assert(fc.property(fc.oneof(fc.string(), fc.webUrl()), (text) => void judgeUrl(text, strict)));
  });
});

describe('an exception', () => {
  it('admits its block and nothing beside it', () => {
    expect(judgeAddress('10.1.2.3', allowing('10.1.0.0/16'))).toMatchObject({ ok: true });
    expect(judgeAddress('10.2.0.0', allowing('10.1.0.0/16'))).toMatchObject({ ok: false });
    expect(judgeAddress('fd00::5', allowing('fd00::/64'))).toMatchObject({ ok: true });
    expect(judgeAddress('fd00:0:0:1::5', allowing('fd00::/64'))).toMatchObject({ ok: false });
    expect(judgeAddress('127.0.0.1', allowing('::1/128'))).toMatchObject({ ok: false });
    expect(judgeAddress('::1', allowing('127.0.0.0/8'))).toMatchObject({ ok: false });
  });

  it('for IPv4 covers the mapped form, which is dialled as IPv4, and no other carrier', () => {
    expect(judgeAddress('::ffff:10.1.2.3', allowing('10.0.0.0/8'))).toEqual({
      ok: true,
      address: '10.1.2.3',
      loopback: false,
    });
    expect(judgeAddress('64:ff9b::10.1.2.3', allowing('10.0.0.0/8'))).toMatchObject({ ok: false });
    expect(judgeAddress('2002:a01:203::', allowing('10.0.0.0/8'))).toMatchObject({ ok: false });
    expect(judgeAddress('64:ff9b:1::10.1.2.3', allowing('64:ff9b:1::/48'))).toMatchObject({ ok: true });
  });

  it('admits a literal when a URL is written', () => {
    const policy: AddressPolicy = { allowHttp: 'off', ...allowing('10.0.0.0/8') };
    expect(judgeUrl('https://10.1.2.3/hook', policy)).toMatchObject({ ok: true });
    expect(judgeUrl('https://0xa.0x1.515/hook', policy)).toMatchObject({ ok: true });
    expect(judgeUrl('http://10.1.2.3/hook', policy)).toMatchObject({ ok: false, code: 'url_scheme' });
  });
});
