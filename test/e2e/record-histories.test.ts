import { afterAll, beforeAll, describe, it } from 'vitest';
import { keepHistory } from '../replay/keep-history.js';
import { wholeScenarios } from '../replay/whole-scenarios.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn } from '../support/posthorn.js';

/**
 * Records those of test/replay/histories that need all of Posthorn anew:
 * RECORD_HISTORIES=1 npx vitest run --project e2e test/e2e/record-histories.test.ts. When: see test/replay/record.test.ts.
 */
describe.runIf(process.env['RECORD_HISTORIES'] === '1')('recording', () => {
  let posthorn: RunningPosthorn;
  let receiver: RecordingReceiver;
  beforeAll(async () => {
    receiver = await RecordingReceiver.start();
    posthorn = await startPosthorn();
  });
  afterAll(async () => {
    await posthorn.stop();
    await receiver.stop();
  });

  it.each(Object.entries(wholeScenarios))('%s', async (name, play) => {
    await keepHistory(name, await play(posthorn, receiver.url));
  });
});
