import { readFileSync } from 'node:fs';

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/**
 * Keys for tests only; nothing trusts them. `receiver` is for receiver.test, *.receiver.test and 127.0.0.1 and was issued by
 * `authority`, whose key no longer exists. They are valid until 2126.
 */
export const certificates = {
  authority: read('ca.pem'),
  receiver: { cert: read('receiver.pem'), key: read('receiver-key.pem') },
  selfSigned: { cert: read('self-signed.pem'), key: read('self-signed-key.pem') },
};

/** For clients, issued by `authority`, whose key no longer exists: `a` and `b` until 2126, `expired` until 2021. */
export const clientCertificates = {
  authority: read('client-ca.pem'),
  a: { certificate: read('client-a.pem'), private_key: read('client-a-key.pem') },
  b: { certificate: read('client-b.pem'), private_key: read('client-b-key.pem') },
  expired: { certificate: read('client-expired.pem'), private_key: read('client-expired-key.pem') },
};
