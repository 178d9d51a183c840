import { z } from 'zod';
import { clientAuthentications, credentialMask } from '../../domain/credentials.js';
import { judgeHeaders, maxHeaderNameLength, maxHeaderValueLength } from '../../domain/custom-headers.js';
import { judgeClientCertificate, maxPemLength } from '../../security/client-certificate.js';
import { timestamp } from '../../http/text.dto.js';

const maxLength = 1_000;
const maxTokenLength = 4_096;

/** A rule that names its field and never repeats what was given. */
function text(name: string, rule: string, pattern: RegExp, max: number) {
  const message = `${name} is ${rule}, 1 – ${max} characters`;
  return z.string({ error: message }).min(1, message).max(max, message).regex(pattern, message);
}

const visible = /^[\x21-\x7e]*$/;
const printable = /^[\x20-\x7e]*$/;
const noControls = /^[^\p{Cc}\p{Cs}]*$/u;

const masked = `\`${credentialMask}\`, written back, keeps what is stored.`;

const basicDto = z
  .strictObject({
    type: z.literal('basic').describe('Basic (RFC 7617), in UTF-8.'),
    username: z
      .string({ error: 'username is a text without colons' })
      .max(maxLength, `username has at most ${maxLength} characters`)
      .regex(/^[^:\p{Cc}\p{Cs}]*$/u, 'username has no colon and no control characters')
      .describe(`Without colons, at most ${maxLength} characters; may be empty. Secret too: ${masked}`),
    password: z
      .string({ error: 'password is a text' })
      .max(maxLength, `password has at most ${maxLength} characters`)
      .regex(noControls, 'password has no control characters')
      .describe(`At most ${maxLength} characters; may be empty. ${masked}`),
  })
  .meta({ id: 'BasicCredentials', description: '`Authorization: Basic …`' });

const bearerDto = z
  .strictObject({
    type: z.literal('bearer').describe('A token that never changes by itself.'),
    token: text('token', 'visible ASCII without spaces', visible, maxTokenLength).describe(
      `1 – ${maxTokenLength} visible ASCII characters. ${masked}`,
    ),
  })
  .meta({ id: 'BearerCredentials', description: '`Authorization: Bearer …`' });

const headerDto = z
  .strictObject({
    type: z.literal('header').describe('A header of your own.'),
    name: z
      .string({ error: 'name is the name of a header, such as X-Api-Key' })
      .describe(`Its name, at most ${maxHeaderNameLength} characters. Those that Posthorn or HTTP sets are refused.`),
    value: z
      .string({ error: 'value is the value of the header' })
      .describe(`1 – ${maxHeaderValueLength} printable ASCII characters. ${masked}`),
  })
  .superRefine(({ name, value }, context) => {
    const judged = judgeHeaders({ [name]: value });
    if (!judged.ok) context.addIssue({ code: 'custom', path: ['name'], message: judged.rule });
  })
  .meta({ id: 'HeaderCredentials', description: 'One header, by its name.' });

const oauthDto = z
  .strictObject({
    type: z.literal('oauth2_client_credentials').describe('OAuth 2.0 client credentials (RFC 6749, section 4.4).'),
    token_url: z
      .string({ error: 'token_url is the https URL of the token server' })
      .describe('Where tokens are fetched. The same addresses are allowed as for `url`; no user name, no fragment.'),
    client_id: text('client_id', 'printable ASCII', printable, maxLength).describe(
      `1 – ${maxLength} printable ASCII characters.`,
    ),
    client_secret: text('client_secret', 'printable ASCII', printable, maxLength).describe(
      `1 – ${maxLength} printable ASCII characters. ${masked} For another \`token_url\` it has to be given again.`,
    ),
    client_authentication: z
      .enum(clientAuthentications, { error: `client_authentication is one of ${clientAuthentications.join(', ')}` })
      .default('client_secret_basic')
      .describe('How the client shows its secret: in a header, or in the body. Default: `client_secret_basic`.'),
    scope: text('scope', 'a list of scopes, separated by spaces', printable, maxLength)
      .nullable()
      .default(null)
      .describe('Scopes to ask for, separated by spaces. Default: none.'),
    audience: text('audience', 'printable ASCII', printable, maxLength)
      .nullable()
      .default(null)
      .describe('The `audience` to ask for, where the server wants one. Default: none.'),
  })
  .meta({
    id: 'OAuthCredentials',
    description:
      '`Authorization: Bearer …` with a token that is fetched, kept until 30 s before its end, and fetched again.',
  });

/** Each may be left out, and null takes it away. */
export const credentialSettings = {
  credentials: z
    .discriminatedUnion('type', [basicDto, bearerDto, headerDto, oauthDto], {
      error:
        'credentials is an object such as {"type": "bearer", "token": "3f9a"}, with a type of basic, bearer, header or oauth2_client_credentials, or null for none',
    })
    .nullable()
    .meta({
      description:
        'What shows the endpoint that a request is ours; goes along with every request to it. Kept encrypted, and shown with `***` for each secret. At most one source of each header: a header of the same name in `headers` is refused. A user name and password in `url` become Basic credentials. Default: none.',
      example: { type: 'bearer', token: '3f9a' },
    }),
  client_certificate: z
    .strictObject(
      {
        certificate: pem('certificate').describe(
          `PEM: the certificate, and those between it and its authority, at most ${maxPemLength} characters.`,
        ),
        private_key: pem('private_key').describe(
          `PEM, without a passphrase, at most ${maxPemLength} characters. Never shown again.`,
        ),
      },
      {
        error: (issue) =>
          issue.code === 'invalid_type' ? 'client_certificate is {"certificate", "private_key"}, or null' : undefined,
      },
    )
    .superRefine(({ certificate, private_key }, context) => {
      const judged = judgeClientCertificate(certificate, private_key, Date.now());
      if (!judged.ok) context.addIssue({ code: 'custom', path: [judged.field], message: judged.rule });
    })
    .meta({ id: 'NewClientCertificate', description: 'A client certificate and its key, both PEM.' })
    .nullable()
    .meta({
      description:
        'The client certificate for endpoints that ask for one (mutual TLS), with its key. Kept encrypted. Default: none.',
    }),
};

function pem(name: string) {
  const rule = `${name} is a text in PEM of at most ${maxPemLength} characters`;
  return z.string({ error: rule }).max(maxPemLength, rule);
}

/** The same as an answer, flat, since what is not there says nothing. */
export const shownCredentialsDto = z
  .object({
    type: z
      .enum(['basic', 'bearer', 'header', 'oauth2_client_credentials', 'unreadable'])
      .describe('As given. `unreadable`: it can’t be decrypted, since its key is gone from the key ring.'),
    username: z.string().optional().describe('Of `basic`: `***`.'),
    password: z.string().optional().describe('Of `basic`: `***`.'),
    token: z.string().optional().describe('Of `bearer`: `***`.'),
    name: z.string().optional().describe('Of `header`: its name.'),
    value: z.string().optional().describe('Of `header`: `***`.'),
    token_url: z.string().optional().describe('Of `oauth2_client_credentials`: where tokens are fetched.'),
    client_id: z.string().optional().describe('Of `oauth2_client_credentials`.'),
    client_secret: z.string().optional().describe('Of `oauth2_client_credentials`: `***`.'),
    client_authentication: z.enum(clientAuthentications).optional().describe('Of `oauth2_client_credentials`.'),
    scope: z.string().nullable().optional().describe('Of `oauth2_client_credentials`.'),
    audience: z.string().nullable().optional().describe('Of `oauth2_client_credentials`.'),
  })
  .meta({ id: 'Credentials', description: 'What goes along with every request, with its secrets masked.' });
export type ShownCredentials = z.infer<typeof shownCredentialsDto>;

export const shownCertificateDto = z
  .object({
    subject: z
      .string()
      .nullable()
      .describe(
        'Whom it names. Null, as the next two: it can’t be decrypted, since its key is gone from the key ring.',
      ),
    fingerprint_sha256: z.string().nullable().describe('SHA-256 of the certificate, as OpenSSL prints it.'),
    valid_from: timestamp().nullable().describe('Since when it is valid.'),
    expires_at: timestamp().describe('Until when it is valid. The owner is told in time.'),
  })
  .meta({ id: 'ClientCertificate', description: 'The client certificate, without its key.' });
export type ShownCertificate = z.infer<typeof shownCertificateDto>;
