import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Of the profile, what lies in it is summed up; times as in the profile, microseconds of the machine's monotonic clock. */
export interface Window {
  readonly fromUs: number;
  readonly toUs: number;
  /** Deliveries in that time. */
  readonly delivered: number;
}

const mostFunctions = 40;
const notWork = new Set(['(idle)', '(root)']);

/** Self time by module and by function, in per cent of the busy time, and in µs a delivery where the number of deliveries is known. */
export function summarise(path: string, window: Window | null): string {
  const profile = JSON.parse(readFileSync(path, 'utf8')) as CpuProfile;
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const byModule = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let [atUs, busyUs, allUs] = [profile.startTime, 0, 0];
  profile.samples.forEach((id, index) => {
    const us = profile.timeDeltas[index] ?? 0;
    atUs += us;
    if (window && (atUs < window.fromUs || atUs > window.toUs)) return;
    allUs += us;
    const { functionName, url, lineNumber } = frames.get(id)!;
    if (notWork.has(functionName)) return;
    busyUs += us;
    const module = moduleOf(functionName, url);
    byModule.set(module, (byModule.get(module) ?? 0) + us);
    const place =
      url === ''
        ? functionName || '(anonymous native code)'
        : `${functionName || '(anonymous)'}  ${shortPath(url)}:${lineNumber + 1}`;
    byFunction.set(place, (byFunction.get(place) ?? 0) + us);
  });
  const rows = (of: Map<string, number>, most: number): string =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, most)
      .map(([name, us]) => {
        const each = window && window.delivered > 0 ? `${(us / window.delivered).toFixed(1).padStart(9)} µs` : '';
        return `${((us / busyUs) * 100).toFixed(1).padStart(5)} %${each}  ${name}\n`;
      })
      .join('');
  const each =
    window && window.delivered > 0 ? `, ${(busyUs / window.delivered).toFixed(0)} µs of this thread a delivery` : '';
  return (
    `The thread was busy for ${((busyUs / allUs) * 100).toFixed(0)} % of ${(allUs / 1e6).toFixed(1)} s${each}.\n\n` +
    `Self time by module\n\n${rows(byModule, 30)}\nSelf time by function\n\n${rows(byFunction, mostFunctions)}`
  );
}

/** A package, a folder of ours two levels deep, Node itself, or what V8 does on its own. */
function moduleOf(functionName: string, url: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native code';
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/');
  const path = shortPath(url);
  const inPackage = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path);
  return inPackage ? inPackage[1]! : path.split('/').slice(0, 2).join('/');
}

function shortPath(url: string): string {
  return url.replace(/^.*\/(node_modules\/)/, '$1').replace(/^file:\/\/.*?\/dist\//, '');
}

/** `npm run bench:profile -- FILE.cpuprofile`. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = process.argv[2];
  if (path === undefined || path.startsWith('-')) {
    process.stderr.write(
      'Usage: npm run bench:profile -- FILE.cpuprofile\nPrints the self time of a CPU profile by module and by function.\n',
    );
    process.exitCode = path === '--help' ? 0 : 2;
  } else {
    const window = `${path}.window.json`;
    process.stdout.write(
      summarise(path, existsSync(window) ? (JSON.parse(readFileSync(window, 'utf8')) as Window) : null),
    );
  }
}
