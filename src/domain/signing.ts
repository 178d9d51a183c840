/** The strings of the `default` profile's signature, `Webhook-Signature: t=<unix>,v1=<hex>[,v1=<hex>…]`. */

export const signatureHeaderName = 'Webhook-Signature';

/** What is signed is `<t>.<body>`; this is the part before the body. */
export function signedContentPrefix(unixSeconds: number): string {
  return `${unixSeconds}.`;
}

/** `signatures` are hexadecimal, one per active secret: a consumer accepts the request when any of them is its own. */
export function signatureHeader(unixSeconds: number, signatures: readonly string[]): string {
  return [`t=${unixSeconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(',');
}
