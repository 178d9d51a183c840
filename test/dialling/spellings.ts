/** Everything here is inside: this machine, its network, or nowhere. */
const innerIpv4 = [
  '127.0.0.1',
  '127.8.16.32',
  '0.0.0.0',
  '10.0.0.1',
  '172.16.5.4',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
] as const;

type Octets = readonly [number, number, number, number];

const number = ([a, b, c, d]: Octets): number => ((a * 256 + b) * 256 + c) * 256 + d;
const hex = (value: number, width = 1): string => value.toString(16).padStart(width, '0');
const octal = (value: number, width = 1): string => `0${value.toString(8).padStart(width, '0')}`;
const low = ([, , c, d]: Octets): number => c * 256 + d;
const words = ([a, b, c, d]: Octets): string => `${hex(a * 256 + b)}:${hex(c * 256 + d)}`;
const inverted = (octets: Octets): Octets => octets.map((octet) => octet ^ 255) as unknown as Octets;
const digits = (text: string, zero: number): string =>
  text.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));
const circled = (text: string): string =>
  text.replace(/\d/g, (digit) => (digit === '0' ? '⓪' : String.fromCodePoint(0x245f + Number(digit))));
const percent = (text: string): string =>
  text.replace(/[\d.]/g, (character) => `%${hex(character.codePointAt(0) ?? 0, 2)}`);

/** Ways to write one IPv4 address into a URL, by name. Each comes to an address inside, whatever its form. */
const spellers: Readonly<Record<string, (octets: Octets, text: string) => string>> = {
  dotted: (_, text) => text,
  'dotted with a final dot': (_, text) => `${text}.`,
  decimal: (octets) => String(number(octets)),
  'decimal with a final dot': (octets) => `${number(octets)}.`,
  hex: (octets) => `0x${hex(number(octets))}`,
  'hex in capitals, padded': (octets) => `0X0000${hex(number(octets), 8).toUpperCase()}`,
  'hex octets': (octets) => octets.map((octet) => `0x${hex(octet)}`).join('.'),
  octal: (octets) => octal(number(octets)),
  'octal octets': (octets) => octets.map((octet) => octal(octet)).join('.'),
  'octal octets, padded': (octets) => octets.map((octet) => octal(octet, 7)).join('.'),
  'mixed octets': ([a, b, c, d]) => `${octal(a)}.0x${hex(b)}.${c}.${octal(d)}`,
  'three parts': (octets) => `${octets[0]}.${octets[1]}.${low(octets)}`,
  'two parts': (octets) => `${octets[0]}.${number(octets) % 2 ** 24}`,
  'two parts in hex': (octets) => `0x${hex(octets[0])}.0x${hex(number(octets) % 2 ** 24)}`,
  'full-width digits': (_, text) => digits(text, 0xff10),
  'mathematical digits': (_, text) => digits(text, 0x1d7d8),
  'circled digits': (_, text) => circled(text),
  'ideographic dots': (_, text) => text.replaceAll('.', '。'),
  'half-width dots': (_, text) => text.replaceAll('.', '｡'),
  'percent-encoded': (_, text) => percent(text),
  'with a soft hyphen': (_, text) => text.replace('.', '\u00ad.'),
  mapped: (_, text) => `[::ffff:${text}]`,
  'mapped in hex': (octets) => `[::FFFF:${words(octets)}]`,
  'mapped in full': (octets) => `[0:0:0:0:0:ffff:${words(octets)}]`,
  compatible: (_, text) => `[::${text}]`,
  'compatible in hex': (octets) => `[0::${words(octets)}]`,
  translated: (_, text) => `[::ffff:0:${text}]`,
  NAT64: (_, text) => `[64:ff9b::${text}]`,
  'NAT64 in hex': (octets) => `[0064:ff9b:0:0:0:0:${words(octets)}]`,
  'NAT64 of a local network': (_, text) => `[64:ff9b:1::${text}]`,
  '6to4': (octets) => `[2002:${words(octets)}::1]`,
  'Teredo server': (octets) => `[2001:0:${words(octets)}:8000:63bf:3fff:fdd2]`,
  'Teredo client': (octets) => `[2001:0:4136:e378:8000:63bf:${words(inverted(octets))}]`,
  ISATAP: (_, text) => `[2606:4700::5efe:${text}]`,
  'ISATAP, universal': (octets) => `[2606:4700:0:0:200:5efe:${words(octets)}]`,
};

// prettier-ignore
const innerIpv6 = [
  '[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000:0000:0000:0000:0000:0000:0001]', '[0::1]', '[::0.0.0.1]', '[::]', '[0::0]',
  '[::0.0.0.0]', '[fe80::1]', '[FE80::1]', '[febf::1]', '[fec0::1]', '[fc00::1]', '[fd00:ec2::254]', '[FD12:3456::1]',
  '[ff02::1]', '[ff0e::1]', '[2001:db8::1]', '[3fff::1]', '[2001:2::1]', '[2001:10::1]', '[2001:20::1]', '[100::1]',
  '[5f00::1]', '[3ffe::1]', '[200::1]', '[4000::1]', '[64:ff9b::]', '[64:ff9b:1::]', '[2002::]', '[2001::]',
];

export interface Spelling {
  readonly how: string;
  readonly host: string;
  /** As a resolver would answer it: the number that the URL parser makes of it. */
  readonly address: string;
}

const spelling = (how: string, host: string): Spelling => ({
  how,
  host,
  address: new URL(`https://${host}/`).hostname.replace(/^\[|\]$|\.$/g, ''),
});

/** Every way, once. */
export const spellings: readonly Spelling[] = [
  ...new Map(
    [
      ...innerIpv4.flatMap((text) => {
        const octets = text.split('.').map(Number) as unknown as Octets;
        return Object.entries(spellers).map(([how, spell]) => spelling(how, spell(octets, text)));
      }),
      ...innerIpv6.map((host) => spelling('IPv6', host)),
    ].map((each) => [each.host, each]),
  ).values(),
];

/** What a resolver must not talk us into dialling either: no plain addresses, though a lenient stack would read them as some. */
export const oddAnswers = [
  '',
  ' ',
  '127.1',
  '0177.0.0.1',
  '0x7f000001',
  '2130706433',
  '127.0.0.1 ',
  '127.0.0.1.',
  '[::1]',
  '::1%lo',
  'fe80::1%lo',
  '::ffff:127.0.0.1%lo',
  'localhost',
] as const;
