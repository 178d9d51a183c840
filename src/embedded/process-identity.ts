import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What tells a process from a later one that got the same number. */
export interface ProcessIdentity {
  readonly startedAt: string;
  readonly command: string;
}

/** Reads a running process; null when there is none, or only what is left of one (a zombie answers signals too). */
export function readProcess(pid: number): ProcessIdentity | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  return process.platform === 'linux' ? readFromProc(pid) : readFromPs(pid);
}

function readFromProc(pid: number): ProcessIdentity | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in brackets and may hold spaces: count from the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startedAt] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X' || startedAt === undefined) return null;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0+$/, '').replaceAll('\0', ' ');
    return { startedAt, command };
  } catch {
    return null;
  }
}

function readFromPs(pid: number): ProcessIdentity | null {
  try {
    const [state, startedAt, command] = ['state=', 'lstart=', 'command='].map((column) =>
      execFileSync('ps', ['-ww', '-o', column, '-p', String(pid)], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim(),
    );
    if (state === undefined || startedAt === undefined || command === undefined || state.startsWith('Z')) return null;
    return { startedAt, command };
  } catch {
    return null;
  }
}

/** Waits until the process is gone or its number belongs to another one; false at the deadline. */
export async function waitForProcessEnd(pid: number, identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    if (readProcess(pid)?.startedAt !== identity.startedAt) return true;
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
