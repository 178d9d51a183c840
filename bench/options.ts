import { parseArgs } from 'node:util';
import { type SubjectName, titles } from './subjects/subject.js';

export const measures = ['single', 'batch', 'steady', 'ingest'] as const;
export type Measure = (typeof measures)[number];

export interface Options {
  readonly engines: 'embedded' | 'production';
  readonly subjects: readonly SubjectName[];
  readonly measures: readonly Measure[];
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly steadySeconds: number;
  readonly rate: number;
  readonly endpoints: number;
  readonly json: string | null;
  readonly profile: string | null;
}

export const temporalServerVariable = 'BENCH_TEMPORAL_SERVER';

const help = `Usage: npm run bench -- [options]

Measures Posthorn, and beside it what it is compared with, on one Temporal server and one Postgres, in interleaved rounds: events accepted and
delivered a second, the time from publish request to receipt, CPU time and memory of every process, statements, WAL and workflow events
per delivery. Prints tables and the targets with pass or MISS; exits 1 where one is missed. Everything listens on loopback and ends with the run.

  --engines NAME       embedded (default): the engines of \`npm start\`
                       production: a Temporal server on Postgres as in docker-compose.yml; ${temporalServerVariable}=/path/to/folder names the
                       folder with its programs \`server\` and \`sql\` (npm run test:production-server builds them)
  --subjects LIST      of ${Object.keys(titles).join(', ')} (default: all; express is left out where this build has no such lane)
${Object.entries(titles)
  .map(([name, title]) => `                         ${name.padEnd(8)} ${title}`)
  .join('\n')}
  --measures LIST      of ${measures.join(', ')} (default: all)
                         single   saturated by single publishes
                         batch    saturated by POST /v1/events/batch with 100 events each: express and c
                         steady   so many events a second as --rate says
                         ingest   batches of 100 that nothing is delivered of: an event type without endpoint, and a paused endpoint
  --rounds N           interleaved rounds (default 5); figures are medians, with least and most
  --seconds N          of each saturated spell (default 8; the first fifth is not counted)
  --warm-up N          seconds of load before the first round (default 5)
  --steady-seconds N   of each steady spell (default 10)
  --rate N             events a second of the steady spells (default 50; where the engine takes less than twice as many, half of what it takes)
  --endpoints N        endpoints that Posthorn's events go to in turn (default 8)
  --json FILE          writes all figures of all rounds
  --profile FOLDER     instead of measuring: Posthorn under --cpu-prof, saturated for --seconds, in the lanes among --subjects; writes
                       FOLDER/<lane>-main.cpuprofile and .svg, a flame graph (and both of the thread that runs the workflows), and prints
                       where the CPU time went
  --help               this text

A whole run takes some 12 minutes. A short one: npm run bench -- --subjects b,default --measures single --rounds 1 --seconds 4
`;

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Null: the help was asked for, and printed. */
export function readOptions(args: readonly string[]): Options | null {
  const text = { type: 'string' } as const;
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        engines: text,
        subjects: text,
        measures: text,
        rounds: text,
        seconds: text,
        'warm-up': text,
        'steady-seconds': text,
        rate: text,
        endpoints: text,
        json: text,
        profile: text,
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  if (values.help) {
    process.stdout.write(help);
    return null;
  }
  return {
    engines: oneOf('engines', ['embedded', 'production'], values.engines ?? 'embedded'),
    subjects: listOf('subjects', Object.keys(titles) as SubjectName[], values.subjects),
    measures: listOf('measures', measures, values.measures),
    rounds: Math.ceil(number('rounds', values.rounds, 5)),
    seconds: number('seconds', values.seconds, 8),
    warmUpSeconds: number('warm-up', values['warm-up'], 5),
    steadySeconds: number('steady-seconds', values['steady-seconds'], 10),
    rate: number('rate', values.rate, 50),
    endpoints: Math.ceil(number('endpoints', values.endpoints, 8)),
    json: values.json ?? null,
    profile: values.profile ?? null,
  };
}

function number(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!(value > 0) || value > 3_600) throw new UsageError(`--${name} must be a number from 1 to 3600`);
  return value;
}

function oneOf<T extends string>(name: string, known: readonly T[], value: string): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new UsageError(`--${name}: '${value}' is none of ${known.join(', ')}`);
  return found;
}

function listOf<T extends string>(name: string, known: readonly T[], value: string | undefined): readonly T[] {
  if (value === undefined) return known;
  const wanted = new Set(value.split(',').map((one) => oneOf(name, known, one.trim())));
  return known.filter((one) => wanted.has(one));
}
