import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Cidr } from '../config/cidr.js';

export interface AddressPolicy {
  /** `loopback`: http only to this machine. */
  readonly allowHttp: 'on' | 'loopback' | 'off';
  /** Exceptions to the rule that only global unicast addresses may be dialled. */
  readonly allowedCidrs: readonly Cidr[];
}

export type AddressJudgement =
  /** `address` is the normalised text of what was judged: dial exactly this. */
  | { readonly ok: true; readonly address: string; readonly loopback: boolean }
  /** `kind` says in words what the address is. */
  | { readonly ok: false; readonly kind: string };

export type UrlFault =
  | 'url_invalid'
  | 'url_too_long'
  | 'url_scheme'
  | 'url_credentials'
  | 'url_fragment'
  | 'url_host'
  | 'url_port'
  | 'url_address';

export type UrlJudgement =
  { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly code: UrlFault; readonly message: string };

export const maxUrlLength = 2_048;

const example = 'https://hooks.example.com/posthorn';

/** What ipaddr.js does not class as special although it must not be dialled. */
const further: readonly (readonly [string, string])[] = [
  ['168.63.129.16/32', "a cloud platform's own service"],
  ['3ffe::/16', 'reserved'],
];
const furtherCidrs = further.map(([block, kind]) => [ipaddr.parseCIDR(block), kind] as const);
const globalUnicast6 = ipaddr.parseCIDR('2000::/3');
const compatible = ipaddr.parseCIDR('::/96');
const nat64WellKnown = ipaddr.parseCIDR('64:ff9b::/96');

const kinds: Readonly<Record<string, string>> = {
  unspecified: 'unspecified',
  broadcast: 'broadcast',
  multicast: 'multicast',
  linkLocal: 'link-local',
  loopback: 'loopback',
  carrierGradeNat: 'shared (carrier-grade NAT)',
  private: 'private',
  uniqueLocal: 'unique-local',
  deprecatedSiteLocal: 'site-local',
  benchmarking: 'benchmarking',
  '6to4': '6to4',
  teredo: 'Teredo',
  rfc6145: 'IPv4-translated',
  rfc6052: 'NAT64',
};

/**
 * Judges a numeric address as the network stack would read it. Only global unicast addresses pass, and those inside
 * `allowedCidrs`. Anything that `net.isIP` does not accept is no address and is refused.
 */
export function judgeAddress(text: string, { allowedCidrs }: Pick<AddressPolicy, 'allowedCidrs'>): AddressJudgement {
  const parsed = parseAddress(text);
  if (parsed === null) return { ok: false, kind: isIP(text) === 0 ? 'not an address' : 'scoped to a zone' };
  // A mapped address is dialled as IPv4, so it is IPv4 for every rule; other embeddings travel as IPv6.
  const effective = parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
  const loopback = effective.range() === 'loopback';
  const excepted = allowedCidrs.some((cidr) => inside(effective, cidr) || inside(parsed, cidr));
  const kind = excepted ? null : specialKind(effective);
  return kind === null ? { ok: true, address: effective.toString(), loopback } : { ok: false, kind };
}

function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  switch (isIP(text)) {
    case 4:
      return ipaddr.IPv4.parse(text);
    case 6:
      // ipaddr.js reads ::127.0.0.1 as mapped where the stack reads compatible: normalise first. A zone has no URL form.
      return URL.canParse(`http://[${text}]/`)
        ? ipaddr.IPv6.parse(new URL(`http://[${text}]/`).hostname.slice(1, -1))
        : null;
    default:
      return null;
  }
}

function inside(address: ipaddr.IPv4 | ipaddr.IPv6, [block, bits]: Cidr): boolean {
  return address.kind() === block.kind() && address.match(block, bits);
}

/** Null for a global unicast address, else what it is. */
function specialKind(address: ipaddr.IPv4 | ipaddr.IPv6): string | null {
  const named = furtherCidrs.find(([cidr]) => inside(address, cidr));
  if (named) return named[1];
  const range: string = address.range();
  if (address instanceof ipaddr.IPv4) return range === 'unicast' ? null : (kinds[range] ?? 'reserved');
  // DNS64 answers with these for IPv4-only hosts in IPv6-only networks, so a global address inside is let through.
  if (inside(address, nat64WellKnown)) return embeddedKind('NAT64', address, 6);
  // ISATAP: an IPv4 address in the interface id of any prefix.
  if (address.parts[5] === 0x5efe && ((address.parts[4] ?? 0) & 0xfdff) === 0)
    return embeddedKind('ISATAP', address, 6);
  if (range !== 'unicast') return kinds[range] ?? 'reserved';
  if (inside(address, compatible)) return 'IPv4-compatible';
  return inside(address, globalUnicast6) ? null : 'reserved';
}

function embeddedKind(carrier: string, { parts }: ipaddr.IPv6, at: number): string | null {
  const [high = 0, low = 0] = parts.slice(at);
  const kind = specialKind(new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]));
  return kind === null ? null : `${carrier} around a ${kind} one`;
}

/**
 * Judges a URL before it is stored, and again before it is dialled. Numbers in the host are judged here, after URL parsing;
 * names are judged when they are dialled, by what they resolve to.
 */
export function judgeUrl(text: string, policy: AddressPolicy): UrlJudgement {
  if (text.length > maxUrlLength) return tooLong();
  // The parser would drop or rewrite these silently, and we promise to call exactly the URL that was given.
  if (/[\p{Cc}\s]|^[^?]*\\/u.test(text))
    return refuse('url_invalid', 'a URL has no spaces, control characters or backslashes');
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return refuse('url_invalid', 'the URL must be absolute');
  if (scheme !== 'https' && scheme !== 'http')
    return refuse('url_scheme', `the scheme '${scheme.slice(0, 20)}' is not https`);
  const authority = /^[a-z]+:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined || authority === '' || authority.startsWith(':'))
    return refuse('url_host', 'the URL has no host');
  if (authority.includes('@')) return refuse('url_credentials', 'a URL must not carry a user name or password');
  if (!URL.canParse(text)) return refuse('url_invalid', 'this is not a valid URL');

  const url = new URL(text);
  if (url.href.length > maxUrlLength) return tooLong();
  if (text.includes('#')) return refuse('url_fragment', 'a fragment (#…) is never sent to a server');
  if (url.port === '0') return refuse('url_port', 'port 0 cannot be dialled');

  const literal = literalAddress(url);
  if (literal === null && !isDnsName(url.hostname)) return refuse('url_host', 'the host is not a valid name');
  const judgement = literal === null ? null : judgeAddress(literal, policy);
  if (judgement?.ok === false) {
    return refuse('url_address', `only public addresses may be called, and this one is ${judgement.kind}`);
  }
  if (url.protocol === 'http:') {
    if (policy.allowHttp === 'off') return refuse('url_scheme', 'only https is allowed');
    const local = judgement === null ? isLocalName(url.hostname) : judgement.loopback;
    if (policy.allowHttp === 'loopback' && !local)
      return refuse(
        'url_scheme',
        'http is allowed to this machine only (localhost, 127.0.0.1, [::1]); elsewhere use https',
      );
  }
  return { ok: true, url };
}

/** The numeric address that stands in a URL for a name, without brackets, else null. */
export function literalAddress({ hostname }: URL): string | null {
  const text = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(text) === 0 ? null : text;
}

function isDnsName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '');
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
}

export function isLocalName(hostname: string): boolean {
  return /^(?:.+\.)?localhost\.?$/.test(hostname);
}

function tooLong(): UrlJudgement {
  return refuse('url_too_long', `a URL has at most ${maxUrlLength} characters, percent-encoding included`);
}

function refuse(code: UrlFault, rule: string): UrlJudgement {
  return { ok: false, code, message: `${rule}; an accepted example is ${example}` };
}
