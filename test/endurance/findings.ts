import { allDeliveries } from '../support/processes.js';
import type { ApiClient, RecordingReceiver } from '../support/posthorn.js';
import { until } from '../support/posthorn.js';
import type { Kill } from './estate.js';
import type { Accepted } from './traffic.js';

/** A request that came although the delivery had been received before. */
export interface Repeat {
  readonly deliveryId: string;
  readonly firstAt: number;
  readonly againAt: number;
  /** The kill that it was in flight at: received, and not yet recorded. */
  readonly kill: Kill | null;
}

/** What was received is recorded within this time, or its sender or the database has died. */
const recordedWithinMs = 5_000;

/** Waits until every accepted delivery has succeeded; answers those that have not. */
export async function openDeliveries(
  api: () => ApiClient,
  accepted: readonly Accepted[],
  timeoutMs: number,
): Promise<string[]> {
  const waiting = async (): Promise<number> => {
    let count = 0;
    for (const status of ['pending', 'retrying', 'held', 'failed'])
      count += (await allDeliveries(api(), `status=${status}`)).length;
    return count;
  };
  await until('nothing waits', async () => (await waiting()) === 0, timeoutMs).catch(() => undefined);
  const succeeded = new Set((await allDeliveries(api(), 'status=succeeded')).map(({ id }) => id));
  return accepted.map(({ deliveryId }) => deliveryId).filter((id) => !succeeded.has(id));
}

export function neverReceived(accepted: readonly Accepted[], receiver: RecordingReceiver): string[] {
  const received = new Set(receiver.requests.map(({ deliveryId }) => deliveryId));
  return accepted.map(({ deliveryId }) => deliveryId).filter((id) => !received.has(id));
}

export function findRepeats(receiver: RecordingReceiver, kills: readonly Kill[]): Repeat[] {
  const last = new Map<string, number>();
  const repeats: Repeat[] = [];
  for (const { deliveryId, at } of receiver.requests) {
    const firstAt = last.get(deliveryId);
    last.set(deliveryId, at);
    if (firstAt === undefined) continue;
    const kill = kills.find(
      ({ killedAt, backAt }) =>
        firstAt >= killedAt - recordedWithinMs && firstAt <= (backAt ?? killedAt) && at >= killedAt,
    );
    repeats.push({ deliveryId, firstAt, againAt: at, kill: kill ?? null });
  }
  return repeats;
}

export interface Resumption {
  readonly kill: Kill;
  /** Accepted and not received, or received and sent again: what the kill found under way. */
  readonly inFlight: number;
  readonly repeated: number;
  /** From the return of what was killed to the next request of each of them; negative: others went on meanwhile. */
  readonly resumedAfterMs: readonly number[];
}

/** What each kill cost. */
export function resumptions(
  kills: readonly Kill[],
  accepted: readonly Accepted[],
  receiver: RecordingReceiver,
): Resumption[] {
  const receipts = new Map<string, number[]>();
  for (const { deliveryId, at } of receiver.requests)
    receipts.set(deliveryId, [...(receipts.get(deliveryId) ?? []), at]);
  const repeats = findRepeats(receiver, kills);
  return kills.map((kill) => {
    const mine = repeats.filter((repeat) => repeat.kill === kill);
    const next = accepted.flatMap(({ deliveryId, acceptedAt }) => {
      const times = receipts.get(deliveryId) ?? [];
      if (acceptedAt > kill.killedAt || times[0] === undefined || times[0] <= kill.killedAt) return [];
      return [times[0]];
    });
    const resumedAfterMs = [...next, ...mine.map(({ againAt }) => againAt)]
      .map((at) => at - (kill.backAt ?? kill.killedAt))
      .toSorted((a, b) => a - b);
    return { kill, inFlight: resumedAfterMs.length, repeated: mine.length, resumedAfterMs };
  });
}

export function describeResumptions(found: readonly Resumption[], startedAt: number): string {
  return found
    .map(({ kill, inFlight, repeated, resumedAfterMs }) => {
      const at = ((kill.killedAt - startedAt) / 1_000).toFixed(1).padStart(7);
      const away = (((kill.backAt ?? Number.NaN) - kill.killedAt) / 1_000).toFixed(1);
      const middle = resumedAfterMs[Math.floor(resumedAfterMs.length / 2)];
      const wentOn =
        middle === undefined
          ? ''
          : `, went on ${middle} ms (median) and ${resumedAfterMs.at(-1)} ms (last) after its return`;
      return `${at} s  ${kill.part.padEnd(8)} away ${away.padStart(5)} s, ${inFlight} under way, ${repeated} of them received twice${wentOn}`;
    })
    .join('\n');
}
