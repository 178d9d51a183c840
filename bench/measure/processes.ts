import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** CPU time and memory of a process and all that it has started. */
export interface Usage {
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

let ticksPerSecond: number | null = null;

/** CPU time of children that have ended is in their parents' figures, so that nothing is lost between two looks. */
export function cpuMsOf(roots: readonly number[]): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  let ticks = 0;
  for (const fields of treeOf(roots)) ticks += fields.cpuTicks;
  return (ticks / ticksPerSecond) * 1_000;
}

/** CPU time of all that runs on this machine. */
export function cpuMsOfMachine(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}

/**
 * Resident memory. Pages that several processes share, as Postgres's backends do, count once (proportional set size); where the kernel
 * doesn't tell, each process's resident set counts in full.
 */
export function memoryBytesOf(roots: readonly number[]): number {
  let bytes = 0;
  for (const { pid } of treeOf(roots)) bytes += memoryOf(pid);
  return bytes;
}

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly cpuTicks: number;
}

function treeOf(roots: readonly number[]): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? []);
  const wanted = new Set(roots);
  for (let size = -1; size !== wanted.size;) {
    size = wanted.size;
    for (const { pid, parent } of all) if (wanted.has(parent)) wanted.add(pid);
  }
  return all.filter(({ pid }) => wanted.has(pid));
}

function readStat(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold spaces: fields count from the last bracket. The third field of the whole line is the first here.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).map(Number);
    return { pid, parent: Number(fields[1]), cpuTicks: ticks.reduce((sum, value) => sum + value, 0) };
  } catch {
    return null;
  }
}

function memoryOf(pid: number): number {
  return kilobytes(`/proc/${pid}/smaps_rollup`, 'Pss') ?? kilobytes(`/proc/${pid}/status`, 'VmRSS') ?? 0;
}

function kilobytes(path: string, name: string): number | null {
  try {
    const found = new RegExp(`^${name}: *([0-9]+) kB`, 'm').exec(readFileSync(path, 'utf8'));
    return found ? Number(found[1]) * 1_024 : null;
  } catch {
    return null;
  }
}
