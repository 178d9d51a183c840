import { batchLoad, ingestLoad, isOnTheEngine, singleLoad } from './loads.js';
import type { Saturation } from './load/load.js';
import type { Figures } from './measure/round.js';
import type { Options } from './options.js';
import { Results } from './report/results.js';
import type { Stage } from './stage.js';
import { type SubjectName, titles } from './subjects/subject.js';

type Say = (text: string) => void;

/** Rounds are interleaved: what the machine does beside them touches all subjects alike. */
export async function measureAll(stage: Stage, options: Options, say: Say): Promise<Results> {
  const results = new Results();
  const wants = new Set(options.measures);
  await warmUp(stage, options, say);
  if (wants.has('single'))
    await rounds(options, stage.names, say, 'saturated by single publishes', async (name) => {
      const figures = await saturated(stage, name, singleLoad(name, options));
      results.add('single', name, figures);
      return `${figures.deliveredPerSecond.toFixed(1)} delivered/s`;
    });
  const loops = stage.names.filter(takesBatches);
  if (wants.has('batch') && loops.length > 0)
    await rounds(options, loops, say, 'saturated by batches', async (name) => {
      const figures = await saturated(stage, name, batchLoad(options));
      results.add('batch', name, figures);
      return `${figures.deliveredPerSecond.toFixed(1)} delivered/s`;
    });
  if (wants.has('steady')) await measureSteady(stage, options, results, say);
  if (wants.has('ingest')) await measureIngest(stage, options, results, say);
  return results;
}

/** On the engine a batch of 100 would wait for its turn, and say nothing that single publishes don't. */
const takesBatches = (name: SubjectName): boolean => !isOnTheEngine(name);

async function warmUp(stage: Stage, options: Options, say: Say): Promise<void> {
  for (const name of stage.names) {
    say(`warming up ${titles[name]}`);
    const load = { ...singleLoad(name, options), ms: options.warmUpSeconds * 1_000 };
    await stage.subject(name).saturate(load);
    if (takesBatches(name) && options.measures.includes('batch'))
      await stage.subject(name).saturate({ ...batchLoad(options), ms: options.warmUpSeconds * 1_000 });
    await stage.subject(name).take();
  }
}

async function rounds(
  options: Options,
  names: readonly SubjectName[],
  say: Say,
  what: string,
  measure: (name: SubjectName) => Promise<string>,
): Promise<void> {
  for (let round = 1; round <= options.rounds; round += 1)
    for (const name of names)
      say(`${what}, round ${round} of ${options.rounds}: ${titles[name]}: ${await measure(name)}`);
}

function saturated(stage: Stage, name: SubjectName, load: Saturation): Promise<Figures> {
  const subject = stage.subject(name);
  return stage.meter.measure(subject, () => subject.saturate(load));
}

/** One rate for all that run on the engine: as asked, or half of what the slowest of them takes. */
async function measureSteady(stage: Stage, options: Options, results: Results, say: Say): Promise<void> {
  const engineRate = await rateForTheEngine(stage, options, results, say);
  for (const name of stage.names) results.rates.set(name, isOnTheEngine(name) ? engineRate : options.rate);
  await rounds(options, stage.names, say, 'at a steady rate', async (name) => {
    const subject = stage.subject(name);
    const load = { ms: options.steadySeconds * 1_000, perSecond: results.rates.get(name)! };
    const figures = await stage.meter.measure(subject, () => subject.steady(load));
    results.add('steady', name, figures);
    return `p50 ${figures.p50Ms.toFixed(1)} ms, p99 ${figures.p99Ms.toFixed(1)} ms at ${load.perSecond}/s`;
  });
}

async function rateForTheEngine(stage: Stage, options: Options, results: Results, say: Say): Promise<number> {
  const names = stage.names.filter(isOnTheEngine);
  if (names.length === 0) return options.rate;
  const capacities: number[] = [];
  for (const name of names) {
    const known = results.spread('single', name, (figures) => figures.deliveredPerSecond);
    capacities.push(known?.median ?? (await saturated(stage, name, singleLoad(name, options))).deliveredPerSecond);
  }
  const least = Math.min(...capacities);
  if (options.rate <= least / 2) return options.rate;
  const rate = Math.max(1, Math.floor(least / 2));
  say(
    `${options.rate}/s is more than half of what the engine takes here (${least.toFixed(1)}/s): on the engine the steady rate is ${rate}/s`,
  );
  return rate;
}

/** Nothing is delivered, so that only accepting is measured. */
async function measureIngest(stage: Stage, options: Options, results: Results, say: Say): Promise<void> {
  const load = ingestLoad(options);
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const posthorn of stage.posthorns) {
      const ingest = (types: readonly string[]): Promise<Figures> => {
        const target = { ...posthorn.target, types };
        return stage.meter.measure(posthorn, () => stage.http.ingest(target, load), false);
      };
      const none = await ingest(['bench.nobody']);
      results.add('ingest-no-endpoint', posthorn.name, none);
      const held = await ingest([posthorn.pausedType]);
      results.add('ingest-paused', posthorn.name, held);
      say(
        `ingest alone, round ${round} of ${options.rounds}: ${posthorn.title}: ${none.acceptedPerSecond.toFixed(0)}/s without endpoint, ` +
          `${held.acceptedPerSecond.toFixed(0)}/s to a paused one`,
      );
    }
  }
}
