import ipaddr from 'ipaddr.js';

export type Cidr = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * Reads an address block such as `10.0.0.0/8` or `fd00::/8`.
 * @throws {Error} saying which form is expected.
 */
export function parseCidr(text: string): Cidr {
  try {
    return ipaddr.parseCIDR(text);
  } catch {
    throw new Error(`'${text}' is not an address block such as 10.0.0.0/8 or fd00::/8`);
  }
}
