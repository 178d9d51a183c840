import { connect } from 'node:net';
import { Pool } from 'undici';
import { serveParent } from '../child.js';
import { nowUs } from '../measure/clock.js';
import { eventText, type Saturation, type Steadiness } from './load.js';
import { type Publish, Progress, publishSteadily, saturate } from './pacer.js';

/** Where events are published to. */
export interface Target {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly types: readonly string[];
}

export type GeneratorCommand =
  | { readonly kind: 'saturate'; readonly target: Target; readonly load: Saturation }
  | { readonly kind: 'steady'; readonly target: Target; readonly load: Steadiness };

/** The producers: a process of its own, so that its CPU time is nobody else's. It follows the receiver's count, and stops where too much is under way. */
const receiver = new URL(process.argv[2]!);
const pools = new Map<string, Pool>();

serveParent(null, async (command: GeneratorCommand) => {
  const { target } = command;
  const pool = pools.get(target.apiUrl) ?? new Pool(target.apiUrl, { connections: 128 });
  pools.set(target.apiUrl, pool);
  if (command.kind === 'steady') return publishSteadily(command.load, publisher(pool, target, 1));
  const { load } = command;
  const progress = new Progress();
  const unfollow = await followCount((arrived) => progress.reached(arrived));
  const result = await saturate(load, publisher(pool, target, load.batch), progress);
  unfollow();
  return result;
});

function publisher(pool: Pool, { apiKey, types }: Target, batch: number): Publish {
  const path = batch === 1 ? '/v1/events' : '/v1/events/batch';
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return async (first, size) => {
    const sentUs = nowUs();
    const texts = Array.from({ length: size }, (_, index) =>
      eventText(types[(first + index) % types.length]!, sentUs, first + index),
    );
    const body = batch === 1 ? texts[0]! : `{"events":[${texts.join(',')}]}`;
    return (await post(pool, path, headers, body)) === 202 ? size : 0;
  };
}

/** The answer's status; its body is thrown away unread. */
function post(pool: Pool, path: string, headers: Record<string, string>, body: string): Promise<number> {
  return new Promise((resolve) => {
    let status = 0;
    pool.dispatch(
      { path, method: 'POST', headers, body },
      {
        onRequestStart() {},
        onResponseStart(_, statusCode) {
          status = statusCode;
        },
        onResponseData() {},
        onResponseEnd: () => resolve(status),
        onResponseError: () => resolve(0),
      },
    );
  });
}

/** Tells how many events have arrived since the call, as often as the receiver says so; answers the function that ends it. */
function followCount(onArrived: (count: number) => void): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(receiver.port), receiver.hostname, () => socket.write('GET /count HTTP/1.1\r\n\r\n'));
    let before: number | null = null;
    let unread = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      const lines = (unread + text).split('\n');
      unread = lines.pop()!;
      if (lines.length === 0) return;
      const count = Number(lines.at(-1));
      if (before === null) {
        before = count;
        resolve(() => socket.destroy());
      } else onArrived(count - before);
    });
    socket.on('error', reject);
  });
}
