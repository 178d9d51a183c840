import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver, until } from '../support/posthorn.js';
import { Estate, type Kill } from './estate.js';
import { describeResumptions, findRepeats, neverReceived, openDeliveries, resumptions } from './findings.js';
import { events, extra, lane, perSecond, senders } from './settings.js';
import { Traffic } from './traffic.js';

const killCount = 3;
const mostTwice = 10;
const goesOnWithinMs = 5_000;

let estate: Estate;
let receiver: RecordingReceiver;

beforeAll(async () => {
  estate = await Estate.start(lane, extra);
  receiver = await RecordingReceiver.start((_, reply) => {
    setTimeout(() => reply.writeHead(200).end(), 30);
  });
  await estate.client.createEndpoint(receiver.url, ['endured.*']);
});
afterAll(async () => {
  await estate.stop();
  await receiver.stop();
});

describe(`of ${events} events in the ${lane} lane, with three kills of what sends them`, () => {
  it('at most 10 are received twice, none is lost, and what was in flight goes on within 5 s', async () => {
    const startedAt = Date.now();
    const traffic = new Traffic(estate, { perSecond, most: events });
    for (let number = 1; number <= killCount; number += 1) {
      const moment = Math.floor((events * (number - 1 + Math.random())) / killCount);
      await traffic.reaches(Math.max(1, moment), 600_000);
      const kills: Kill[] = await Promise.all(senders.map((part) => estate.kill(part)));
      await Promise.all(kills.map((kill) => estate.restart(kill)));
      // The next kill is to find a system at work, not one that still comes back.
      const before = traffic.accepted.filter(({ acceptedAt }) => acceptedAt <= kills[0]!.killedAt);
      await until('what was in flight went on', async () => neverReceived(before, receiver).length === 0, 120_000);
    }
    await traffic.reaches(events, 600_000);
    await traffic.stop();

    const { accepted } = traffic;
    const open = await openDeliveries(() => estate.client, accepted, 120_000);
    const repeats = findRepeats(receiver, estate.kills);
    const twice = new Set(repeats.map(({ deliveryId }) => deliveryId)).size;
    const found = resumptions(estate.kills, accepted, receiver);
    const last = Math.max(...found.map(({ resumedAfterMs }) => resumedAfterMs.at(-1) ?? 0));
    console.info(
      `${lane} lane: ${accepted.length} deliveries, ${twice} received twice, the last in flight went on ${last} ms after the restart\n` +
        describeResumptions(found, startedAt),
    );
    expect(accepted).toHaveLength(events);
    expect(open).toEqual([]);
    expect(neverReceived(accepted, receiver)).toEqual([]);
    expect(repeats.filter(({ kill }) => kill === null)).toEqual([]);
    expect(twice).toBeLessThanOrEqual(mostTwice);
    expect(last).toBeLessThanOrEqual(goesOnWithinMs);
  });
});
