import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isWork, moduleOf, readProfile, selfTimes, shortPath, type Window } from './cpu-profile.js';
import { flameGraph } from './flame-graph.js';

const mostFunctions = 40;

/** Self time by module and by function, in per cent of the busy time, and in µs a delivery where the number of deliveries is known. */
export function summarise(path: string, window: Window | null): string {
  const profile = readProfile(path);
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const byModule = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let [busyUs, allUs] = [0, 0];
  for (const [id, us] of selfTimes(profile, window)) {
    const frame = frames.get(id)!;
    allUs += us;
    if (!isWork(frame)) continue;
    busyUs += us;
    const { functionName, url, lineNumber } = frame;
    const module = moduleOf(frame);
    byModule.set(module, (byModule.get(module) ?? 0) + us);
    const place =
      url === ''
        ? functionName || '(anonymous native code)'
        : `${functionName || '(anonymous)'}  ${shortPath(url)}:${lineNumber + 1}`;
    byFunction.set(place, (byFunction.get(place) ?? 0) + us);
  }
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

const usage = `Usage: npm run bench:profile -- FILE.cpuprofile [TITLE]
Prints the self time of a CPU profile by module and by function, and draws FILE.svg, a flame graph.
`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [path, title] = process.argv.slice(2);
  if (path === undefined || path.startsWith('-')) {
    process.stderr.write(usage);
    process.exitCode = path === '--help' ? 0 : 2;
  } else {
    const besides = `${path}.window.json`;
    const window = existsSync(besides) ? (JSON.parse(readFileSync(besides, 'utf8')) as Window) : null;
    process.stdout.write(summarise(path, window));
    const drawn = path.replace(/\.cpuprofile$/, '') + '.svg';
    writeFileSync(drawn, flameGraph(readProfile(path), window, title ?? path));
    process.stdout.write(`\nFlame graph: ${drawn}\n`);
  }
}
