import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

export const maxPemLength = 16_384;
const maxChain = 10;

export type CertificateJudgement =
  | { readonly ok: true; readonly expiresAt: Date }
  /** The rule that is broken. It never repeats any of the texts. */
  | { readonly ok: false; readonly field: 'certificate' | 'private_key'; readonly rule: string };

/** What may be told of a client certificate: all of it is public. */
export interface CertificateFacts {
  readonly subject: string;
  readonly fingerprintSha256: string;
  readonly validFrom: Date;
  readonly expiresAt: Date;
}

/** Judges a client certificate, with those between it and its authority after it, and its key: both PEM. */
export function judgeClientCertificate(certificate: string, privateKey: string, nowMs: number): CertificateJudgement {
  const chain = readChain(certificate);
  const [leaf] = chain ?? [];
  if (!chain || !leaf)
    return refuse('certificate', `certificate is 1 – ${maxChain} certificates in PEM, the client’s own first`);
  const facts = factsOf(leaf);
  if (facts.expiresAt.getTime() <= nowMs)
    return refuse('certificate', `the certificate has expired, on ${facts.expiresAt.toISOString()}`);
  if (facts.validFrom.getTime() > nowMs)
    return refuse('certificate', `the certificate is not valid before ${facts.validFrom.toISOString()}`);
  if (privateKey.includes('ENCRYPTED'))
    return refuse('private_key', 'private_key has no passphrase: decrypt it first, it is kept encrypted here');
  const key = readKey(privateKey);
  if (key === null) return refuse('private_key', 'private_key is one private key in PEM');
  if (!leaf.checkPrivateKey(key)) return refuse('private_key', 'the private key belongs to another certificate');
  try {
    createSecureContext({ cert: certificate, key: privateKey });
  } catch {
    return refuse('certificate', 'OpenSSL refuses this certificate and key, as it does where a key is too short');
  }
  return { ok: true, expiresAt: facts.expiresAt };
}

/** Null where it is no certificate. */
export function describeCertificate(certificate: string): CertificateFacts | null {
  const [leaf] = readChain(certificate) ?? [];
  return leaf ? factsOf(leaf) : null;
}

const block = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

function readChain(text: string): X509Certificate[] | null {
  const blocks = text.match(block) ?? [];
  if (blocks.length === 0 || blocks.length > maxChain || text.replace(block, '').trim() !== '') return null;
  try {
    return blocks.map((pem) => new X509Certificate(pem));
  } catch {
    return null;
  }
}

function readKey(text: string): KeyObject | null {
  if ((text.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----/g) ?? []).length !== 1) return null;
  try {
    return createPrivateKey(text);
  } catch {
    return null;
  }
}

function factsOf(leaf: X509Certificate): CertificateFacts {
  return {
    subject: leaf.subject.replaceAll('\n', ', '),
    fingerprintSha256: leaf.fingerprint256,
    validFrom: new Date(leaf.validFrom),
    expiresAt: new Date(leaf.validTo),
  };
}

function refuse(field: 'certificate' | 'private_key', rule: string): CertificateJudgement {
  return { ok: false, field, rule };
}
