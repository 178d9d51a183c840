import { once } from 'node:events';
import { createPublicKey, verify } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CloudEvent, HTTP, ValidationError } from 'cloudevents';
import { Webhook as StandardWebhook, WebhookVerificationError } from 'standardwebhooks';
import { Stripe } from 'stripe';
import { Webhook as SvixWebhook, WebhookVerificationError as SvixVerificationError } from 'svix';
import { sha256, type Answer, type Receiver } from './receiver.js';

interface Message {
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
  readonly secret: string;
}

/** Throws when it refuses. */
type Verifier = (message: Message) => void;
type Verifiers = Readonly<Record<string, Verifier>>;

/** Reads what all verifiers accepted. */
export interface Reader {
  readonly name: string;
  readonly read: (message: Message) => unknown;
}

const stripe = new Stripe('sk_test_x');
const textHeaders = (headers: IncomingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

export const stripeVerifier = {
  'stripe (npm)': ({ body, headers, secret }: Message) =>
    void stripe.webhooks.constructEvent(body, String(headers['webhook-signature']), secret),
};

export const standardVerifiers = {
  'standardwebhooks (npm)': ({ body, headers, secret }: Message) =>
    void new StandardWebhook(secret).verify(body, textHeaders(headers)),
  'svix (npm)': ({ body, headers, secret }: Message) => void new SvixWebhook(secret).verify(body, textHeaders(headers)),
};

class Refused extends Error {}

/** Follows the text of Standard Webhooks with Node's own Ed25519, since none of the libraries here verifies `v1a`. */
export const ed25519Verifier = {
  'node:crypto': ({ body, headers, secret }: Message) => {
    const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => headers[`webhook-${name}`]);
    if (!id || !timestamp || !signatures) throw new Refused('missing required headers');
    const ageS = Date.now() / 1_000 - Number(timestamp);
    if (Math.abs(ageS) > 300) throw new Refused(`message timestamp too ${ageS > 0 ? 'old' : 'new'}`);
    const x = Buffer.from(secret.replace(/^whpk_/, ''), 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const content = Buffer.concat([Buffer.from(`${String(id)}.${String(timestamp)}.`), body]);
    const good = String(signatures)
      .split(' ')
      .filter((part) => part.startsWith('v1a,'))
      .some((part) => verify(null, content, key, Buffer.from(part.slice('v1a,'.length), 'base64')));
    if (!good) throw new Refused('no matching signature found');
  },
};

/** What a verifier throws for any other reason is a fault of the suite or of our message. */
const refusalErrors = [
  WebhookVerificationError,
  SvixVerificationError,
  Stripe.errors.StripeSignatureVerificationError,
  ValidationError,
  Refused,
] as const;
const isRefusal = (error: unknown): error is Error => refusalErrors.some((kind) => error instanceof kind);

/** A receiver in this process. */
export async function startNodeReceiver(
  secrets: readonly string[],
  verifiers: Verifiers,
  reader?: Reader,
): Promise<Receiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const secret = secrets[Number(request.url?.slice(1))] ?? '';
      try {
        const answer = judge({ body: Buffer.concat(chunks), headers: request.headers, secret }, verifiers, reader);
        const said = Object.values(answer.refusals);
        const accepted = said.every((refusal) => refusal === null);
        response.writeHead(accepted ? 200 : 400).end(JSON.stringify(answer));
      } catch (error) {
        response.writeHead(500).end(String(error));
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function judge(message: Message, verifiers: Verifiers, reader: Reader | undefined): Omit<Answer, 'status'> {
  const refusals: Record<string, string | null> = {};
  for (const [name, verify] of Object.entries(verifiers)) refusals[name] = refusalOf(() => verify(message));
  const verified = Object.values(refusals).every((refusal) => refusal === null);
  let event: unknown;
  if (verified && reader) refusals[reader.name] = refusalOf(() => (event = reader.read(message)));
  return { sha256: sha256(message.body), refusals, event };
}

function refusalOf(work: () => unknown): string | null {
  try {
    work();
    return null;
  } catch (error) {
    if (isRefusal(error)) return error.message;
    throw error;
  }
}

/** What the CloudEvents library reads, with a hash in place of the data. */
export const cloudEventsReader: Reader = {
  name: 'cloudevents (npm)',
  read: ({ headers, body }) => {
    const event = HTTP.toEvent<unknown>({ headers, body: body.toString('utf8') });
    if (!(event instanceof CloudEvent)) throw new Error('not one event');
    // The library's numbers end where JavaScript's do; the rest of the event is to be valid all the same.
    (event.data === Infinity || event.data === -Infinity ? event.cloneWith({ data: 0 }) : event).validate();
    const { specversion, id, source, type, time, datacontenttype, subject, data } = event;
    return { specversion, id, source, type, time, datacontenttype, subject, data: hashOfData(data) };
  },
};

/** The library takes null, false, 0 and "" for absent. */
export function hashOfData(data: unknown): string {
  return sha256(JSON.stringify(data || null));
}
