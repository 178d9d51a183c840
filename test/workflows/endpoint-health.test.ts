import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/security/new-id.js';
import type { EndpointHealthState } from '../../workflows/contracts/endpoint-health.js';
import type { ModelHealth } from '../support/endpoint-model.js';
import { until } from '../support/posthorn.js';
import { WorkflowEngine } from '../support/workflow-engine.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start()));
afterAll(() => engine.stop());

const workflowOf = ({ id }: ModelHealth) => engine.env.client.workflow.getHandle(`endpoint-health/${id}`);
const stateOf = (endpoint: ModelHealth) => workflowOf(endpoint).query<EndpointHealthState>('state');
const tell = ({ id }: ModelHealth) => engine.gateway.endpointChanged(id);

/** The workflow has seen all, and waits. */
async function atRest(endpoint: ModelHealth): Promise<EndpointHealthState> {
  return until('it waits', async () => {
    const state = await stateOf(endpoint);
    return state.doing.startsWith('waiting') && state;
  });
}

/** A change is written, and the workflow told of it. */
async function change(endpoint: ModelHealth, write: (nowMs: number) => void): Promise<number> {
  const nowMs = await engine.model.nowMs();
  const { plans } = endpoint;
  write(nowMs);
  await tell(endpoint);
  await until('the change is seen', async () => endpoint.plans > plans);
  await atRest(endpoint);
  return nowMs;
}

/** Time passes, and what was due in it is done. */
async function pass(endpoint: ModelHealth, ms: number): Promise<void> {
  await engine.env.sleep(ms);
  await atRest(endpoint);
}

async function ended(endpoint: ModelHealth): Promise<void> {
  endpoint.deleted = true;
  await tell(endpoint);
  await workflowOf(endpoint).result();
}

const agesOf = (endpoint: ModelHealth, sinceMs: number): [string, number][] =>
  endpoint.notices.map(({ type, atMs }) => [type, atMs - sinceMs]);
const about = (ms: number) => expect.closeTo(ms, -4.3);

describe('an endpoint that fails', () => {
  it('is warned of at 24 h and 72 h, and disabled at 7 d', async () => {
    const endpoint = await engine.endpoints.add();
    const failedAtMs = await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    expect(await stateOf(endpoint)).toMatchObject({
      status: 'active',
      doing: 'waiting to warn',
      coming: [{ what: 'warn' }, { what: 'warn' }, { what: 'disable' }],
    });
    const { coming } = await stateOf(endpoint);
    expect(Date.parse(coming[2]!.at) - failedAtMs).toEqual(about(7 * day));
    await pass(endpoint, 7 * day + minute);
    expect(agesOf(endpoint, failedAtMs)).toEqual([
      ['endpoint.failing', about(day)],
      ['endpoint.failing', about(3 * day)],
      ['endpoint.disabled', about(7 * day)],
    ]);
    expect(endpoint).toMatchObject({ status: 'disabled', statusReason: 'failing' });
    expect(engine.endpoints.closed).toContain(endpoint.id);
    await ended(endpoint);
  });

  it.each([
    ['24 h', day, []],
    ['72 h', 3 * day, ['endpoint.failing']],
    ['7 d', 7 * day, ['endpoint.failing', 'endpoint.failing']],
  ])('and recovers just before %s is spared that', async (_, stageMs, told) => {
    const endpoint = await engine.endpoints.add();
    await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    await pass(endpoint, stageMs - 5 * minute);
    await change(endpoint, (nowMs) => endpoint.attempt('delivered', nowMs));
    await pass(endpoint, 8 * day);
    expect(endpoint.told).toEqual(told.length > 0 ? [...told, 'endpoint.recovered'] : []);
    expect(endpoint.status).toBe('active');
    await ended(endpoint);
  });

  it('now and then is no news', async () => {
    const endpoint = await engine.endpoints.add();
    for (let flap = 0; flap < 6; flap++) {
      await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
      await pass(endpoint, 23 * hour);
      await change(endpoint, (nowMs) => endpoint.attempt('delivered', nowMs));
      await pass(endpoint, hour);
    }
    expect(endpoint.told).toEqual([]);
    await ended(endpoint);
  });

  it('has nothing told twice where a process dies after each step', async () => {
    const endpoint = await engine.endpoints.add();
    await change(endpoint, (nowMs) => {
      endpoint.deaths = 3;
      endpoint.attempt('failed', nowMs);
    });
    await pass(endpoint, 7 * day + minute);
    expect(endpoint.told).toEqual(['endpoint.failing', 'endpoint.failing', 'endpoint.disabled']);
    expect(endpoint.deaths).toBe(0);
    await ended(endpoint);
  });

  it('is probed after 1, 2, 4 … 24 h once it is disabled, and enabled when it answers', async () => {
    const endpoint = await engine.endpoints.add();
    await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    await pass(endpoint, 7 * day + 5 * day);
    const times = endpoint.calls.map(({ atMs }) => atMs);
    const spacings = times.map((atMs, index) => atMs - (times[index - 1] ?? endpoint.statusChangedAtMs));
    expect(spacings.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 24, 24].map((hours) => about(hours * hour)));
    endpoint.answers = true;
    await pass(endpoint, day);
    expect(endpoint).toMatchObject({ status: 'active', failingSinceMs: null });
    expect(endpoint.told.slice(-2)).toEqual(['endpoint.disabled', 'endpoint.recovered']);
    const { length } = endpoint.calls;
    await pass(endpoint, 3 * day);
    expect(endpoint.calls).toHaveLength(length);
    expect(endpoint.told.filter((type) => type === 'endpoint.recovered')).toHaveLength(1);
    await ended(endpoint);
  });
});

describe('an endpoint that answers', () => {
  it('410 has its owner told at once and once, and isn’t asked again', async () => {
    const endpoint = await engine.endpoints.add();
    const goneAtMs = await change(endpoint, (nowMs) => endpoint.attempt('gone', nowMs));
    await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    await pass(endpoint, 30 * day);
    expect(agesOf(endpoint, goneAtMs)).toEqual([['endpoint.disabled', about(0)]]);
    expect(endpoint.calls).toEqual([]);
    await ended(endpoint);
  });

  it('401 after a success has its owner told once, until it accepts us again', async () => {
    const endpoint = await engine.endpoints.add();
    await change(endpoint, (nowMs) => endpoint.attempt('delivered', nowMs));
    await pass(endpoint, minute);
    for (let attempts = 0; attempts < 4; attempts++) {
      await change(endpoint, (nowMs) => endpoint.attempt('refused', nowMs));
      await pass(endpoint, 30 * minute);
    }
    expect(endpoint.told).toEqual(['endpoint.refused']);
    await change(endpoint, (nowMs) => endpoint.attempt('delivered', nowMs));
    expect(endpoint.told).toEqual(['endpoint.refused', 'endpoint.recovered']);
    await ended(endpoint);
  });
});

describe('an endpoint with an end', () => {
  it('has its owner told 7 days ahead, and expires at the date', async () => {
    const endpoint = await engine.endpoints.add();
    const nowMs = await change(endpoint, (atMs) => {
      endpoint.expiresAtMs = atMs + 20 * day;
    });
    await pass(endpoint, 21 * day);
    expect(agesOf(endpoint, nowMs)).toEqual([
      ['endpoint.expiring', about(13 * day)],
      ['endpoint.expired', about(20 * day)],
    ]);
    expect(endpoint.status).toBe('expired');
    expect(engine.endpoints.closed).toContain(endpoint.id);
    await ended(endpoint);
  });

  it('that is renewed in time doesn’t expire', async () => {
    const endpoint = await engine.endpoints.add();
    await change(endpoint, (atMs) => {
      endpoint.expiresAtMs = atMs + 8 * day;
    });
    await pass(endpoint, 7 * day);
    await change(endpoint, () => {
      endpoint.expiresAtMs = null;
    });
    await pass(endpoint, 30 * day);
    expect(endpoint.told).toEqual(['endpoint.expiring']);
    expect(endpoint.status).toBe('active');
    await ended(endpoint);
  });
});

describe('a new endpoint', () => {
  it('is asked at 0, 10 s, 1 m, 10 m, 1 h and then hourly, and disabled at 72 h', async () => {
    const endpoint = await engine.endpoints.addUnverified();
    const { startedAtMs } = endpoint.verification;
    await tell(endpoint);
    await until('it was asked', async () => endpoint.calls.length > 0);
    await pass(endpoint, 73 * hour);
    const offsets = endpoint.calls.map(({ atMs }) => atMs - startedAtMs);
    expect(offsets.slice(0, 7)).toEqual(
      [0, 10 * second, minute, 10 * minute, hour, 2 * hour, 3 * hour].map((ms) => expect.closeTo(ms, -3.7)),
    );
    expect(offsets.at(-1)).toEqual(about(71 * hour));
    expect(agesOf(endpoint, startedAtMs)).toEqual([['endpoint.verification_expired', about(72 * hour)]]);
    expect(endpoint).toMatchObject({ status: 'disabled', statusReason: 'verification_expired' });
    await ended(endpoint);
  });

  it('that answers is asked no more', async () => {
    const endpoint = await engine.endpoints.addUnverified();
    await tell(endpoint);
    await until('it was asked', async () => endpoint.calls.length > 0);
    endpoint.answers = true;
    await pass(endpoint, 4 * day);
    expect(endpoint.calls).toHaveLength(2);
    expect(endpoint).toMatchObject({ status: 'active', notices: [] });
    await ended(endpoint);
  });
});

describe('the workflow', () => {
  it('keeps its history bounded under many signals, and forgets nothing over it', async () => {
    const endpoint = await engine.endpoints.add();
    const failedAtMs = await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    const { runId } = await workflowOf(endpoint).describe();
    for (let batch = 0; batch < 150; batch++) {
      const { plans } = endpoint;
      await Promise.all([tell(endpoint), tell(endpoint)]);
      await until('they are seen', async () => endpoint.plans > plans);
    }
    await atRest(endpoint);
    const now = await workflowOf(endpoint).describe();
    expect(now.runId).not.toBe(runId);
    expect(now.historyLength).toBeLessThan(2_500);
    const first = await engine.env.client.workflow.getHandle(`endpoint-health/${endpoint.id}`, runId).describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
    expect(first.historyLength).toBeLessThan(2_500);
    await pass(endpoint, day + minute);
    expect(agesOf(endpoint, failedAtMs)).toEqual([['endpoint.failing', about(day)]]);
    await ended(endpoint);
  }, 120_000);

  it('goes on where Temporal has lost it: the next start finds what is due', async () => {
    const endpoint = await engine.endpoints.add();
    const failedAtMs = await change(endpoint, (nowMs) => endpoint.attempt('failed', nowMs));
    await workflowOf(endpoint).terminate('lost');
    await engine.env.sleep(4 * day);
    await tell(endpoint);
    await atRest(endpoint);
    await pass(endpoint, 3 * day + minute);
    expect(agesOf(endpoint, failedAtMs)).toEqual([
      ['endpoint.failing', about(4 * day)],
      ['endpoint.disabled', about(7 * day)],
    ]);
    await ended(endpoint);
  });

  it.each([
    ['no input', undefined],
    ['another endpoint’s id', { endpointId: newId('we_') }],
    ['what is no id', { endpointId: 'orders' }],
  ])('fails by name with %s', async (_, input) => {
    const workflowId = `endpoint-health/${newId('we_')}`;
    const handle = await engine.env.client.workflow.start('endpointHealth', {
      workflowId,
      taskQueue: 'posthorn-control',
      args: input === undefined ? [] : [input],
    });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } });
  });
});
