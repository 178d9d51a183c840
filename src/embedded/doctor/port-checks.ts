import { findPortProblems, type PortWish } from '../ports.js';
import { type Finding, fail, ok } from './finding.js';

/** @param holder the Posthorn that runs in the data directory: its ports are taken, and that is as it should be. */
export async function checkPortsAreFree(
  wishes: readonly PortWish[],
  holder: number | null,
): Promise<readonly Finding[]> {
  const list = wishes.map(({ port }) => port).join(', ');
  const problems = await findPortProblems(wishes);
  if (problems.length === 0) return [ok(`Ports ${list} are free`)];
  if (holder !== null) return [ok(`Ports ${list}: in use by the Posthorn that is running (process ${holder})`)];
  return problems.map((problem) => {
    const [what = problem, todo = ''] = problem.split(/: (?=set )/);
    return fail(what, `${todo.charAt(0).toUpperCase()}${todo.slice(1)}`);
  });
}
