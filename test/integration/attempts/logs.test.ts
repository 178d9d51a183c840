import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../src/telemetry/logger.js';
import { Attempts } from './harness.js';

let attempts: Attempts;
beforeAll(async () => {
  attempts = await Attempts.start();
});
afterAll(() => attempts.stop());

it('each line about an attempt names delivery, event and endpoint, and none holds a payload, a secret or an address', async () => {
  let text = '';
  const log = createLogger('trace', { write: (line: string) => void (text += line) });
  const runner = attempts.newRunner(undefined, undefined, log);
  const delivery = await attempts.publish('http://127.0.0.1:1/hook?token=stays-out', { retryWaitsMs: [1_000] });
  await runner.run(attempts.input(delivery), 'ordinary');
  await runner.run(attempts.input(delivery, { sequence: 2, force: true }), 'ordinary');
  const unbuilt = await attempts.publish('http://127.0.0.1:1/hook');
  await attempts.sql('update endpoint_secrets set sealed = $2 where endpoint_id = $1', [unbuilt.endpointId, 'broken']);
  await runner.run(attempts.input(unbuilt), 'ordinary');

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ids = ({ id, eventId, endpointId }: typeof delivery) => ({
    delivery_id: id,
    event_id: eventId,
    endpoint_id: endpointId,
  });
  const failed = { outcome: 'failed', status_code: null, error_code: 'connection_refused' };
  expect(lines).toEqual([
    expect.objectContaining({ msg: 'attempt recorded', ...ids(delivery), ...failed, attempt: 1 }),
    expect.objectContaining({ msg: 'attempt recorded', ...ids(delivery), ...failed, attempt: 2 }),
    expect.objectContaining({
      msg: 'delivery given up: it is a dead letter now',
      ...ids(delivery),
      ...failed,
      attempt: 2,
      reason: 'attempts_exhausted',
    }),
    expect.objectContaining({ msg: 'attempt can not be built', ...ids(unbuilt) }),
    expect.objectContaining({ msg: 'attempt recorded', ...ids(unbuilt), error_code: 'config_invalid' }),
  ]);
  for (const secret of ['4242', 'stays-out', 'whsec_', 'dGVzdA'])
    expect([secret, text.includes(secret)]).toEqual([secret, false]);
});
