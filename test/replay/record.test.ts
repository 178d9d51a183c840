import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { WorkflowEngine } from '../support/workflow-engine.js';
import { scenarios } from './scenarios.js';

/**
 * Records test/replay/histories anew: RECORD_HISTORIES=1 npx vitest run --project workflows test/replay/record.test.ts.
 * Only before a workflow is changed under `patched()`, or where no history of its kind is in use any more: a history that was
 * recorded afterwards proves nothing about runs that had begun before.
 */
describe.runIf(process.env['RECORD_HISTORIES'] === '1')('recording', () => {
  let engine: WorkflowEngine;
  const directory = join(import.meta.dirname, 'histories');
  beforeAll(async () => {
    engine = await WorkflowEngine.start();
    await mkdir(directory, { recursive: true });
  });
  afterAll(() => engine.stop());

  it.each(Object.entries(scenarios))('%s', async (name, play) => {
    const handle = await play(engine);
    const history = JSON.parse(historyToJSON(await handle.fetchHistory())) as unknown;
    await writeFile(join(directory, `${name}.json`), `${withoutMachine(JSON.stringify(history))}\n`);
  });
});

/** Stack traces and identities name the machine that recorded: a history is about the workflow alone. */
function withoutMachine(text: string): string {
  return text.replaceAll(`${process.cwd()}/`, '/posthorn/').replaceAll(/\d+@[\w.-]+/g, 'worker');
}
