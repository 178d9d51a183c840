import { afterAll, beforeAll, describe, it } from 'vitest';
import { WorkflowEngine } from '../support/workflow-engine.js';
import { keepHistory } from './keep-history.js';
import { scenarios } from './scenarios.js';

/**
 * Records test/replay/histories anew: RECORD_HISTORIES=1 npx vitest run --project workflows test/replay/record.test.ts.
 * Only before a workflow is changed under `patched()`, or where no history of its kind is in use any more: a history that was
 * recorded afterwards proves nothing about runs that had begun before.
 */
describe.runIf(process.env['RECORD_HISTORIES'] === '1')('recording', () => {
  let engine: WorkflowEngine;
  beforeAll(async () => void (engine = await WorkflowEngine.start()));
  afterAll(() => engine.stop());

  it.each(Object.entries(scenarios))('%s', async (name, play) => {
    await keepHistory(name, await play(engine));
  });
});
