import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver } from '../support/posthorn.js';
import { Estate, parts } from './estate.js';
import { describeResumptions, findRepeats, neverReceived, openDeliveries, resumptions } from './findings.js';
import { extra, lane, minutes, perSecond } from './settings.js';
import { Traffic } from './traffic.js';

const [leastPauseMs, mostPauseMs] = [5_000, 15_000];
const mostAwayMs = 3_000;

let estate: Estate;
let receiver: RecordingReceiver;

beforeAll(async () => {
  estate = await Estate.start(lane, extra);
  receiver = await RecordingReceiver.start((_, reply) => {
    // Long enough that a kill finds requests in flight.
    setTimeout(() => reply.writeHead(200).end(), 30);
  });
  await estate.client.createEndpoint(receiver.url, ['endured.*']);
});
afterAll(async () => {
  await estate.stop();
  await receiver.stop();
});

const between = (least: number, most: number): number => least + Math.random() * (most - least);

describe(`${minutes} minutes of load in the ${lane} lane, while worker, API, Temporal and Postgres are killed at random`, () => {
  it('nothing is lost, and only what was in flight at a kill comes twice', async () => {
    const startedAt = Date.now();
    const endsAt = startedAt + minutes * 60_000;
    const traffic = new Traffic(estate, { perSecond, most: Number.MAX_SAFE_INTEGER });
    // Each part in turn in a random order, so that a short run kills each of them too.
    for (let turn = [...parts]; Date.now() < endsAt - mostPauseMs; turn = turn.length > 0 ? turn : [...parts]) {
      await delay(between(leastPauseMs, mostPauseMs));
      const [part] = turn.splice(Math.floor(Math.random() * turn.length), 1);
      const kill = await estate.kill(part!);
      await delay(between(0, mostAwayMs));
      await estate.restart(kill);
    }
    await delay(Math.max(0, endsAt - Date.now()));
    await traffic.stop();

    const { accepted } = traffic;
    const open = await openDeliveries(() => estate.client, accepted, 180_000);
    const repeats = findRepeats(receiver, estate.kills);
    console.info(
      `${lane} lane: ${accepted.length} deliveries, ${estate.kills.length} kills, ${repeats.length} requests repeated\n` +
        describeResumptions(resumptions(estate.kills, accepted, receiver), startedAt),
    );
    expect(estate.kills.length).toBeGreaterThan(2);
    expect(open).toEqual([]);
    expect(neverReceived(accepted, receiver)).toEqual([]);
    expect(repeats.filter(({ kill }) => kill === null)).toEqual([]);
  });
});
