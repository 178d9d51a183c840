import type { EndpointRow, StoredSettings } from '../../database/endpoint-store.js';
import { type AddressPolicy, judgeUrl } from '../../delivery/address-policy.js';
import type { StoredClientCertificate } from '../../delivery/authorization.js';
import { clientCertificateContext, credentialsContext } from '../../delivery/open-endpoint.js';
import { conflictingHeader, type Credentials, maskCredentials, unmaskCredentials } from '../../domain/credentials.js';
import { Problem, printableName } from '../../http/problems/problem.js';
import { describeCertificate } from '../../security/client-certificate.js';
import { type SecretBox, SecretBoxError } from '../../security/secret-box.js';
import type { ShownCertificate, ShownCredentials } from './endpoint-credentials.dto.js';

/** Of a body: what is undefined is left as it is. */
export interface GivenCredentials {
  readonly credentials?: Credentials | null | undefined;
  readonly client_certificate?: StoredClientCertificate | null | undefined;
}

type Sealed = Pick<EndpointRow, 'id' | 'sealed_credentials' | 'sealed_client_certificate'>;

const fault = (field: string, detail: string): Problem => new Problem(422, 'invalid_field', detail, { field });

/**
 * Takes a user name and password out of a URL: they become Basic credentials, and the URL is shown without them.
 * @throws {Problem} without a word of them.
 */
export function takeUserinfo(url: string): { url: string; credentials: Credentials | undefined } {
  const [, scheme = '', userinfo, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#\\]*)@(.*)$/is.exec(url) ?? [];
  if (userinfo === undefined) return { url, credentials: undefined };
  const [username = '', ...password] = userinfo.split(':');
  const decoded = [username, password.join(':')].map(decode);
  const [user, secret] = decoded;
  if (userinfo === '' || user === undefined || secret === undefined || user.includes(':')) {
    throw new Problem(
      422,
      'invalid_url',
      'the user name and password in a URL are percent-encoded UTF-8 without control characters, and no colon is in the user name; an accepted example is https://hooks.example.com/posthorn',
      { field: 'url' },
    );
  }
  return { url: scheme + rest, credentials: { type: 'basic', username: user, password: secret } };
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text);
    return /[\p{Cc}\p{Cs}]/u.test(decoded) || decoded.length > 1_000 ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** Judges, seals and shows what makes an endpoint's requests its own. */
export class EndpointCredentials {
  constructor(
    private readonly box: SecretBox,
    private readonly addresses: AddressPolicy,
  ) {}

  /**
   * What is to be stored, judged with what stays as it is: `url` and `headers` are those that will count.
   * @throws {Problem}
   */
  toSettings(
    row: Sealed,
    given: GivenCredentials,
    { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  ): Partial<StoredSettings> {
    const { id } = row;
    const stored = this.openCredentials(row);
    const credentials = given.credentials === undefined ? stored : this.accepted(given.credentials, stored);
    const header = conflictingHeader(credentials, headers);
    if (header !== null) {
      throw fault(
        `headers.${printableName(header)}`,
        `the endpoint’s credentials set this header: take it out of headers, or set credentials to null`,
      );
    }
    const certificate = this.openCertificate(row);
    const { client_certificate: wanted } = given;
    if ((wanted ?? (wanted === undefined && certificate)) && url.startsWith('http:'))
      throw fault(
        'client_certificate',
        'a client certificate is shown in TLS only: use an https URL, or set it to null',
      );
    return {
      ...(given.credentials === undefined || isSame(credentials, stored)
        ? {}
        : { sealedCredentials: this.seal(credentials, credentialsContext(id)) }),
      ...(wanted === undefined || isSame(wanted, certificate)
        ? {}
        : {
            sealedClientCertificate: this.seal(wanted, clientCertificateContext(id)),
            clientCertificateExpiresAt: wanted && (describeCertificate(wanted.certificate)?.expiresAt ?? null),
          }),
    };
  }

  show(row: Sealed & Pick<EndpointRow, 'client_certificate_expires_at'>): {
    credentials: ShownCredentials | null;
    client_certificate: ShownCertificate | null;
  } {
    const credentials = this.openCredentials(row);
    const expiresAt = row.client_certificate_expires_at;
    const certificate = this.openCertificate(row);
    const facts = certificate && describeCertificate(certificate.certificate);
    const unreadable = row.sealed_credentials === null ? null : { type: 'unreadable' as const };
    return {
      credentials: credentials === null ? unreadable : maskCredentials(credentials),
      client_certificate: expiresAt && {
        subject: facts?.subject ?? null,
        fingerprint_sha256: facts?.fingerprintSha256 ?? null,
        valid_from: facts?.validFrom.toISOString() ?? null,
        expires_at: expiresAt.toISOString(),
      },
    };
  }

  private accepted(given: Credentials | null, stored: Credentials | null): Credentials | null {
    if (given === null) return null;
    const unmasked = unmaskCredentials(given, stored);
    if (!unmasked.ok) throw fault(`credentials.${unmasked.field}`, unmasked.rule);
    const { credentials } = unmasked;
    if (credentials.type !== 'oauth2_client_credentials') return credentials;
    const judged = judgeUrl(credentials.token_url, this.addresses);
    if (!judged.ok) throw new Problem(422, 'invalid_url', judged.message, { field: 'credentials.token_url' });
    return { ...credentials, token_url: judged.url.href };
  }

  private openCredentials({ id, sealed_credentials }: Sealed): Credentials | null {
    return this.open(sealed_credentials, credentialsContext(id)) as Credentials | null;
  }

  private openCertificate({ id, sealed_client_certificate }: Sealed): StoredClientCertificate | null {
    return this.open(sealed_client_certificate, clientCertificateContext(id)) as StoredClientCertificate | null;
  }

  /** Null also where it can't be decrypted: one endpoint must not break a list. */
  private open(sealed: string | null, context: string): unknown {
    if (sealed === null) return null;
    try {
      return JSON.parse(this.box.open(sealed, context));
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  }

  private seal(value: object | null, context: string): string | null {
    return value && this.box.seal(JSON.stringify(value), context);
  }
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
