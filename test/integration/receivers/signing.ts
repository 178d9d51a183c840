/** Signs as the two formats are specified, apart from the code that is tested and from Posthorn's own. */
import { createHmac, randomBytes } from 'node:crypto';

export const formats = ['default', 'standard'] as const;
export type Format = (typeof formats)[number];

export interface Signing {
  readonly secrets: readonly string[];
  /** Unix seconds. */
  readonly at?: number;
  readonly id?: string;
}

export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
export const unixNow = () => Math.floor(Date.now() / 1_000);
export const newDeliveryId = () => `whd_${randomBytes(13).toString('hex').toUpperCase()}`;

export function sign(format: Format, body: Buffer, signing: Signing): Record<string, string> {
  const { secrets, at = unixNow(), id = newDeliveryId() } = signing;
  if (format === 'default') {
    const values = secrets.map(
      (secret) => `v1=${createHmac('sha256', secret).update(`${at}.`).update(body).digest('hex')}`,
    );
    return { 'Webhook-Id': id, 'Webhook-Signature': [`t=${at}`, ...values].join(',') };
  }
  const values = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64')}`;
  });
  return { 'Webhook-Id': id, 'Webhook-Timestamp': String(at), 'Webhook-Signature': values.join(' ') };
}

export interface Sent {
  readonly type?: string;
  /** JSON text. */
  readonly data?: string;
  readonly at?: string;
  /** The delivery's id, or the CloudEvent's. */
  readonly id?: string;
  readonly source?: string;
}

/** The body of a delivery, and what the receiver is to deduplicate it on. */
export function envelope(format: Format, sent: Sent = {}): { readonly body: Buffer; readonly key: string } {
  const { type = 'invoice.paid', data = '{}', at = new Date().toISOString(), id = newDeliveryId() } = sent;
  if (format === 'default') {
    const head = JSON.stringify({ delivery_id: id, type, created_at: at, api_version: null });
    return { body: Buffer.from(`${head.slice(0, -1)},"data":${data}}`), key: id };
  }
  const source = sent.source ?? '/billing';
  const head = JSON.stringify({ specversion: '1.0', id, source, type, time: at, datacontenttype: 'application/json' });
  return { body: Buffer.from(`${head.slice(0, -1)},"data":${data}}`), key: `${source} ${id}` };
}
