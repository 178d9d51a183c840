import { findPortProblems, type PortWish } from '../ports.js';
import { type Finding, fail, ok, warn } from './finding.js';

/**
 * @param holder the Posthorn that runs in the data directory: its ports are taken, and that is as it should be.
 * @param stale engines that a killed Posthorn left running: the next start ends them.
 */
export async function checkPortsAreFree(
  wishes: readonly PortWish[],
  holder: number | null,
  stale: readonly string[],
): Promise<readonly Finding[]> {
  const list = wishes.map(({ port }) => port).join(', ');
  const problems = await findPortProblems(wishes);
  if (problems.length === 0) return [ok(`Ports ${list} are free`)];
  if (holder !== null) return [ok(`Ports ${list}: in use by the Posthorn that is running (process ${holder})`)];
  if (stale.length > 0) {
    const what = `A killed Posthorn left ${stale.join(' and ')} running, on ports of this configuration`;
    return [warn(what, 'Nothing: the next npm start ends them and goes on.')];
  }
  return problems.map((problem) => {
    const [what = problem, todo = ''] = problem.split(/: (?=set )/);
    return fail(what, `${todo.charAt(0).toUpperCase()}${todo.slice(1)}`);
  });
}
