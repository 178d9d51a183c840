/**
 * The strings of the signatures. Each lists one signature per active secret, and a consumer accepts the request when any of
 * them is its own.
 */

export const messageIdHeaderName = 'Webhook-Id';
export const timestampHeaderName = 'Webhook-Timestamp';
export const signatureHeaderName = 'Webhook-Signature';

/** `default` signs `<t>.<body>`; this is the part before the body. */
export function signedContentPrefix(unixSeconds: number): string {
  return `${unixSeconds}.`;
}

/** `t=<unix>,v1=<hex>[,v1=<hex>…]` */
export function signatureHeader(unixSeconds: number, hexSignatures: readonly string[]): string {
  return [`t=${unixSeconds}`, ...hexSignatures.map((signature) => `v1=${signature}`)].join(',');
}

/** Standard Webhooks signs `<id>.<timestamp>.<body>`; this is the part before the body. */
export function standardSignedContentPrefix(messageId: string, unixSeconds: number): string {
  return `${messageId}.${unixSeconds}.`;
}

/** `v1,<base64>[ v1,<base64>…]`, or `v1a` for Ed25519 (Standard Webhooks, "Signature scheme"). */
export function standardSignatureHeader(base64Signatures: readonly string[], version: 'v1' | 'v1a' = 'v1'): string {
  return base64Signatures.map((signature) => `${version},${signature}`).join(' ');
}
