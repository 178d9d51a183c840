/** How an endpoint knows that a request is meant for it. Kept sealed, as this JSON; shown with its secrets masked. */
export type Credentials =
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'header'; readonly name: string; readonly value: string }
  | OAuthCredentials;

/** OAuth 2.0 client credentials (RFC 6749, section 4.4). */
export interface OAuthCredentials {
  readonly type: 'oauth2_client_credentials';
  readonly token_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly client_authentication: ClientAuthentication;
  readonly scope: string | null;
  readonly audience: string | null;
}

export const clientAuthentications = ['client_secret_basic', 'client_secret_post'] as const;
export type ClientAuthentication = (typeof clientAuthentications)[number];

export const credentialMask = '***';

/** A user name counts as secret: many services take their API key for one. */
const secretFields = {
  basic: ['username', 'password'],
  bearer: ['token'],
  header: ['value'],
  oauth2_client_credentials: ['client_secret'],
} as const satisfies Record<Credentials['type'], readonly string[]>;

/** The credentials as they may be shown. */
export function maskCredentials(credentials: Credentials): Credentials {
  const masked = Object.fromEntries(secretFields[credentials.type].map((field) => [field, credentialMask]));
  return { ...credentials, ...masked };
}

export type Unmasked =
  | { readonly ok: true; readonly credentials: Credentials }
  | { readonly ok: false; readonly field: string; readonly rule: string };

/**
 * The credentials to store: a secret that is the mask is what somebody read, and keeps the stored one. That goes only to where
 * it went before: a client secret has to be given again for another token URL, and a value for another header.
 */
export function unmaskCredentials(given: Credentials, stored: Credentials | null): Unmasked {
  const texts = given as unknown as Record<string, string>;
  const masked = secretFields[given.type].filter((field) => texts[field] === credentialMask);
  const [field] = masked;
  if (field === undefined) return { ok: true, credentials: given };
  if (stored?.type !== given.type) return refuse(field, 'and there is none of this type');
  if (given.type === 'oauth2_client_credentials' && stored.type === given.type && given.token_url !== stored.token_url)
    return refuse(field, 'which is for another token_url: give it again');
  if (given.type === 'header' && stored.type === given.type && !sameHeader(given.name, stored.name))
    return refuse(field, 'which is for another header: give it again');
  const before = stored as unknown as Record<string, string>;
  return { ok: true, credentials: { ...given, ...Object.fromEntries(masked.map((name) => [name, before[name]])) } };
}

function refuse(field: string, why: string): Unmasked {
  return { ok: false, field, rule: `${credentialMask} keeps the stored value, ${why}` };
}

/** The endpoint's own header that says the same as its credentials: a request has one of them; null where there is none. */
export function conflictingHeader(
  credentials: Credentials | null,
  headers: Readonly<Record<string, string>>,
): string | null {
  if (credentials === null) return null;
  const name = credentials.type === 'header' ? credentials.name : 'Authorization';
  return Object.keys(headers).find((header) => sameHeader(header, name)) ?? null;
}

function sameHeader(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
