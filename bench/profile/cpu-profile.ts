import { readFileSync } from 'node:fs';

export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Of the profile, what lies in it counts; times as in the profile, microseconds of the machine's monotonic clock. */
export interface Window {
  readonly fromUs: number;
  readonly toUs: number;
  /** Deliveries in that time. */
  readonly delivered: number;
}

const notWork = new Set(['(idle)', '(root)']);

export const isWork = ({ functionName }: CallFrame): boolean => !notWork.has(functionName);

export function readProfile(path: string): CpuProfile {
  return JSON.parse(readFileSync(path, 'utf8')) as CpuProfile;
}

/** Microseconds in the window, by the node in which they were spent themselves. */
export function selfTimes({ samples, timeDeltas, startTime }: CpuProfile, window: Window | null): Map<number, number> {
  const times = new Map<number, number>();
  let atUs = startTime;
  samples.forEach((id, index) => {
    const us = timeDeltas[index] ?? 0;
    atUs += us;
    if (window && (atUs < window.fromUs || atUs > window.toUs)) return;
    times.set(id, (times.get(id) ?? 0) + us);
  });
  return times;
}

/** A package, a folder of ours two levels deep, Node itself, or what V8 does on its own. */
export function moduleOf({ functionName, url }: CallFrame): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native code';
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/');
  const path = shortPath(url);
  const inPackage = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path);
  return inPackage ? inPackage[1]! : path.split('/').slice(0, 2).join('/');
}

export function shortPath(url: string): string {
  return url.replace(/^.*\/(node_modules\/)/, '$1').replace(/^file:\/\/.*?\/dist\//, '');
}
