import type { Saturation } from './load/load.js';
import type { Options } from './options.js';
import type { SubjectName } from './subjects/subject.js';

/** Bound by the engine: more at once would only make them wait for each other. */
const onTheEngine: ReadonlySet<SubjectName> = new Set(['a', 'b', 'b-prime', 'default']);

export const isOnTheEngine = (name: SubjectName): boolean => onTheEngine.has(name);

export function singleLoad(name: SubjectName, options: Options): Saturation {
  const much = isOnTheEngine(name) ? { width: 32, outstanding: 64 } : { width: 64, outstanding: 512 };
  return { ...spell(options), ...much, batch: 1 };
}

export function batchLoad(options: Options): Saturation {
  return { ...spell(options), width: 8, batch: 100, outstanding: 3_000 };
}

/** Nothing arrives, so nothing is waited for. */
export function ingestLoad(options: Options): Saturation {
  return { ...spell(options), width: 6, batch: 100, outstanding: Number.MAX_SAFE_INTEGER };
}

function spell({ seconds }: Options): { ms: number; rampMs: number } {
  return { ms: seconds * 1_000, rampMs: seconds * 200 };
}
