import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import '../support/provided.js';
import { installRuntime } from '../../src/temporal/worker-host.js';
import { silentLog } from '../support/workflow-engine.js';
import { scenarios } from './scenarios.js';
import { wholeScenarios } from './whole-scenarios.js';

interface HistoryJson {
  events: Record<string, unknown>[];
}

beforeAll(() => installRuntime(silentLog));

const directory = join(import.meta.dirname, 'histories');
const names = readdirSync(directory).map((file) => file.replace(/\.json$/, ''));
const read = (name: string): string => readFileSync(join(directory, `${name}.json`), 'utf8');
const parse = (name: string): HistoryJson => JSON.parse(read(name)) as HistoryJson;

/** The workflow's id is part of its input's check, so a replay needs the run's own. */
function workflowIdOf(name: string, { events }: HistoryJson): string {
  if (name === 'deliver-invalid-input') return 'a-name-of-its-own';
  const started = events[0]!['workflowExecutionStartedEventAttributes'] as {
    input: { payloads?: { data: string }[] };
  };
  const [payload] = started.input.payloads ?? [];
  // Started by a schedule, without input.
  if (!payload) return name;
  const input = JSON.parse(Buffer.from(payload.data, 'base64').toString()) as Record<string, string>;
  const kind = name.startsWith('endpoint-health') ? 'endpoint-health' : 'dead-letter-queue';
  if (input['replayId'] !== undefined) return `replay/${input['replayId']}`;
  return input['deliveryId'] ?? `${kind}/${input['endpointId']}`;
}

const replay = (name: string, history: HistoryJson, codePath = inject('workflowBundle')): Promise<void> =>
  Worker.runReplayHistory({ workflowBundle: { codePath } }, history, workflowIdOf(name, history));

/** All texts of a history, its payloads decoded. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value, Buffer.from(value, 'base64').toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsOf);
}

describe('today’s workflows replay the history', () => {
  it.each(names)('%s', async (name) => {
    await replay(name, parse(name));
  });

  it('of each story that is told, and of no other', () => {
    expect(names.sort()).toEqual([...Object.keys(scenarios), ...Object.keys(wholeScenarios)].sort());
  });
});

describe('the alarm rings', () => {
  it.each([
    'deliver-exhausted',
    'deliver-unrecorded',
    'dead-letter-queue-two-windows',
    'dead-letter-queue-bounded-windows',
    'endpoint-health-failing-to-recovered',
    'replay-to-its-end',
    'purge-of-all-kinds',
    'reconcile-with-gaps',
  ])('for %s with another activity in it', async (name) => {
    const history = parse(name);
    const scheduled = history.events.find((event) => event['activityTaskScheduledEventAttributes']);
    const attributes = scheduled!['activityTaskScheduledEventAttributes'] as { activityType: { name: string } };
    attributes.activityType.name = 'somethingElse';
    await expect(replay(name, history)).rejects.toThrow(DeterminismViolationError);
  });

  it('for a first attempt whose local activity has another name', async () => {
    const history = parse('deliver-first-attempt-success');
    const marked = history.events.find((event) => event['markerRecordedEventAttributes']);
    const { details } = marked!['markerRecordedEventAttributes'] as {
      details: { data: { payloads: { data: string }[] } };
    };
    const [payload] = details.data.payloads;
    const what = Buffer.from(payload!.data, 'base64').toString();
    expect(what).toContain('firstAttempt');
    payload!.data = Buffer.from(what.replace('firstAttempt', 'otherAttempt')).toString('base64');
    await expect(replay('deliver-first-attempt-success', history)).rejects.toThrow(DeterminismViolationError);
  });

  it('for a workflow that does something else than it did', async () => {
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(import.meta.dirname, 'fixtures', 'changed.workflow.ts'),
      logger: new DefaultLogger('ERROR'),
    });
    for (const name of [
      'deliver-exhausted',
      'deliver-first-attempt-success',
      'dead-letter-queue-two-windows',
      'replay-to-its-end',
      'purge-of-all-kinds',
      'reconcile-in-order',
    ]) {
      const history = parse(name);
      const changed = Worker.runReplayHistory({ workflowBundle: { code } }, history, workflowIdOf(name, history));
      await expect(changed, name).rejects.toThrow(DeterminismViolationError);
    }
  });
});

describe('a history', () => {
  it.each(names)('of %s holds no secret, no payload and no answer’s body', (name) => {
    const texts = textsOf(parse(name)).join('\n');
    for (const forbidden of ['whsec_', 'a secret of the model', 'a payload of the model', '"card"', 'responseBody']) {
      expect(texts).not.toContain(forbidden);
    }
  });

  it('of a successful first attempt has six events', () => {
    expect(parse('deliver-first-attempt-success').events).toHaveLength(6);
  });
});
