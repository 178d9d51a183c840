import { createHash } from 'node:crypto';
import { parseCidr } from '../../../src/config/cidr.js';
import { DeliveryClient } from '../../../src/delivery/delivery-client.js';
import type { OutboundRequest } from '../../../src/delivery/outbound.js';

/** Somebody else's verifier behind an HTTP server. It is given secrets and verifies a POST to `/<n>` with the nth of them. */
export interface Receiver {
  readonly port: number;
  stop(): Promise<void>;
}

/** A receiver's answer: 200 when none of its verifiers refused, 400 when each of them did. */
export interface Answer {
  readonly status: number | null;
  /** Of the body as it arrived. */
  readonly sha256: string;
  /** By the verifier's name: what it said when it refused, else null. */
  readonly refusals: Readonly<Record<string, string | null>>;
  /** What the CloudEvents library made of the body, where the receiver asks it. */
  readonly event?: unknown;
}

const client = new DeliveryClient({ allowHttp: 'loopback', allowedCidrs: [parseCidr('127.0.0.0/8')] });

export const closeClient = () => client.close();

export function urlOf(receiver: Receiver, secretIndex: number): string {
  return `http://127.0.0.1:${receiver.port}/${secretIndex}`;
}

/** Sends the request as Posthorn does, and reads what the receiver says. */
export async function ask(request: OutboundRequest): Promise<Answer> {
  const answer = await client.send(request);
  const text = answer.responseBody.toString('utf8');
  if (answer.errorMessage !== null && answer.statusCode !== 400) throw new Error(`${answer.errorMessage}: ${text}`);
  return { status: answer.statusCode, ...(JSON.parse(text) as Omit<Answer, 'status'>) };
}

export const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

const parallel = 16;

/** Calls `work` for each item, some at a time. */
export async function forEach<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  const rest = items.entries();
  const lane = async () => {
    for (const [index, item] of rest) await work(item, index);
  };
  await Promise.all(Array.from({ length: parallel }, lane));
}
