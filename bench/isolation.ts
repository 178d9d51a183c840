import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { pause } from '../src/pause.js';
import { endpointHealthQueries } from '../workflows/contracts/endpoint-health.js';
import { endpointHealthWorkflowId } from '../workflows/contracts/names.js';
import type { Arrival, Behaviour, Command } from './isolation-receiver-process.js';
import { type BenchedPosthorn, inParallel, median, startPosthorn } from './support.js';

const endpointCount = 20;
const spellMs = 30_000;
const spells = 3;

if (process.argv.includes('--help')) {
  process.stdout.write(
    `Usage: npm run bench:isolation [-- neighbours|firsts|storm|comeback …]\n\nWhat one bad endpoint costs the others, on the embedded engines: ${endpointCount} endpoints of which one hangs and one\n` +
      `answers after 5 s; 300 first deliveries to hanging endpoints at once; a storm to a rate limited endpoint; 500 deliveries\n` +
      `that wait for an endpoint to come back. Takes some ten minutes. Prints a table, and exits 1 where a target is missed.\n`,
  );
  process.exit(0);
}

interface Line {
  readonly what: string;
  readonly figure: string;
  readonly target: string;
  readonly met: boolean;
}
const lines: Line[] = [];
const say = (text: string): void => void process.stderr.write(`${text}\n`);

class Endpoints {
  private constructor(
    private readonly child: ChildProcess,
    private readonly port: number,
  ) {}

  static async start(): Promise<Endpoints> {
    const child = fork(fileURLToPath(new URL('./isolation-receiver-process.js', import.meta.url)));
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new Endpoints(child, port);
  }

  url(name: string): string {
    return `http://127.0.0.1:${this.port}/${name}`;
  }

  behave(name: string, behaviour: Behaviour): Promise<unknown> {
    return this.ask({ kind: 'behave', path: `/${name}`, behaviour });
  }

  /** What came since the last look. */
  take(name: string): Promise<Arrival[]> {
    return this.ask({ kind: 'take', path: `/${name}` });
  }

  async takeAll(names: readonly string[]): Promise<Arrival[]> {
    const all: Arrival[] = [];
    for (const name of names) all.push(...(await this.take(name)));
    return all;
  }

  stop(): void {
    this.child.disconnect();
  }

  private async ask(command: Command): Promise<Arrival[]> {
    this.child.send(command);
    const [{ taken }] = (await once(this.child, 'message')) as [{ taken: Arrival[] }];
    return taken;
  }
}

class Api {
  constructor(private readonly posthorn: BenchedPosthorn) {}

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.posthorn.apiUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.posthorn.apiKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  subscribe(url: string, name: string, settings: object = {}): Promise<{ id: string }> {
    return this.call('POST', '/v1/webhooks/subscriptions', { url, events: [`to.${name}`], ...settings });
  }

  publish(name: string): Promise<unknown> {
    return this.call('POST', '/v1/events', event(name));
  }

  async publishMany(name: string, count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1_000) {
      const events = Array.from({ length: Math.min(left, 1_000) }, () => event(name));
      await this.call('POST', '/v1/events/batch', { events });
    }
  }
}

const event = (name: string) => ({ type: `to.${name}`, data: { sent_ms: Date.now(), text: 'x'.repeat(500) } });

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

async function until(what: string, done: () => Promise<boolean>, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await pause(50);
  }
}

const endpoints = await Endpoints.start();
const posthorn = await startPosthorn({
  POSTHORN_VERIFICATION_REQUIRED: 'off',
  // Retries come while the run lasts.
  POSTHORN_DELIVERY_RETRY_WAITS: '8s,8s,8s,8s,8s,8s,8s,8s,8s,8s',
});
const api = new Api(posthorn);
const names = Array.from({ length: endpointCount }, (_, index) => `e${index}`);
const healthy = names.slice(0, -2);
const [hanging, slow] = names.slice(-2) as [string, string];
try {
  for (const name of names) await api.subscribe(endpoints.url(name), name, { timeout_ms: 10_000 });
  const capacity = await measureCapacity();
  const parts = {
    neighbours: () => hangingNeighbours(capacity),
    firsts: hangingFirsts,
    storm: () => storm(capacity),
    comeback,
  };
  const chosen = process.argv.slice(2);
  for (const [name, part] of Object.entries(parts)) if (chosen.length === 0 || chosen.includes(name)) await part();
} finally {
  await posthorn.stop();
  endpoints.stop();
}

const width = Math.max(...lines.map(({ what }) => what.length));
for (const { what, figure, target, met } of lines)
  process.stdout.write(`${met ? 'met   ' : 'MISSED'}  ${what.padEnd(width)}  ${figure.padStart(24)}  ${target}\n`);
process.exitCode = lines.every(({ met }) => met) ? 0 : 1;

/** Deliveries a second, when as many are published as go through. */
async function measureCapacity(): Promise<number> {
  say('measuring the capacity');
  const count = 300;
  const round = async (): Promise<number> => {
    const startedAt = performance.now();
    let arrived = 0;
    await inParallel(count, 32, (index) => api.publish(names[index % names.length]!));
    await until('all arrive', async () => (arrived += (await endpoints.takeAll(names)).length) >= count, 120_000);
    return (count / (performance.now() - startedAt)) * 1_000;
  };
  await round();
  const capacity = await round();
  say(`  ${capacity.toFixed(1)} deliveries/s`);
  return capacity;
}

/** Publishes at a steady rate to these endpoints, in turn; returns the latencies of the healthy ones. */
async function steady(targets: readonly string[], perSecond: number, ms: number): Promise<number[]> {
  const startedAt = Date.now();
  const pending: Promise<unknown>[] = [];
  for (let index = 0; Date.now() - startedAt < ms; index += 1) {
    pending.push(api.publish(targets[index % targets.length]!));
    await pause(Math.max(0, startedAt + ((index + 1) * 1_000) / perSecond - Date.now()));
  }
  await Promise.all(pending);
  await pause(3_000);
  return (await endpoints.takeAll(healthy)).map(({ latencyMs }) => latencyMs);
}

async function hangingNeighbours(capacity: number): Promise<void> {
  say('one endpoint hangs, one answers after 5 s');
  const perEndpoint = capacity / 2 / endpointCount;
  const ratios: number[] = [];
  for (let spell = 1; spell <= spells; spell += 1) {
    const alone = await steady(healthy, perEndpoint * healthy.length, spellMs);
    await endpoints.behave(hanging, 'hang');
    await endpoints.behave(slow, 'slow');
    const beside = await steady(names, perEndpoint * names.length, spellMs);
    await endpoints.behave(hanging, 'ok');
    await endpoints.behave(slow, 'ok');
    await pause(12_000);
    await endpoints.takeAll(names);
    ratios.push(percentile(beside, 0.99) / percentile(alone, 0.99));
    say(
      `  ${spell} of ${spells}: p50 ${percentile(alone, 0.5)} → ${percentile(beside, 0.5)} ms, p99 ${percentile(alone, 0.99)} → ${percentile(beside, 0.99)} ms`,
    );
  }
  const ratio = median(ratios);
  lines.push({
    what: 'healthy endpoints’ p99 beside a hanging and a slow one',
    figure: `${ratio.toFixed(2)} ×`,
    target: '≤ 1.5 × that without the two',
    met: ratio <= 1.5,
  });
}

async function hangingFirsts(): Promise<void> {
  say('300 first deliveries to hanging endpoints at once');
  const bad = ['h0', 'h1', 'h2', 'h3', 'h4', 'h5'];
  const ids: string[] = [];
  for (const name of bad) {
    await endpoints.behave(name, 'hang');
    ids.push((await api.subscribe(endpoints.url(name), name, { timeout_ms: 10_000 })).id);
  }
  await Promise.all(bad.map((name) => api.publishMany(name, 50)));
  await pause(1_000);
  await api.publish('e0');
  let arrival: Arrival | undefined;
  await until('the quick one arrives', async () => (arrival = (await endpoints.take('e0'))[0]) !== undefined, 30_000);
  const latency = arrival!.latencyMs;
  lines.push({
    what: 'a quick endpoint’s delivery beside 300 that hang',
    figure: `${latency} ms`,
    target: '< 1,000 ms',
    met: latency < 1_000,
  });
  const connection = await Connection.connect({ address: posthorn.temporalAddress });
  const askedAt = performance.now();
  await new Client({ connection }).workflow
    .getHandle(endpointHealthWorkflowId(ids[0]!))
    .query(endpointHealthQueries.state);
  const tookMs = performance.now() - askedAt;
  await connection.close();
  lines.push({
    what: 'a health query meanwhile',
    figure: `${tookMs.toFixed(0)} ms`,
    target: 'answers (< 5,000 ms)',
    met: tookMs < 5_000,
  });
  for (const id of ids) await fetchDelete(id);
}

/** What an earlier part left behind has gone through: a delivery takes no longer than on a quiet server. */
async function settled(): Promise<void> {
  await until(
    'the server is quiet',
    async () => {
      await api.publish('e0');
      let arrival: Arrival | undefined;
      await until('it arrives', async () => (arrival = (await endpoints.take('e0'))[0]) !== undefined, 60_000);
      return arrival!.latencyMs < 150;
    },
    180_000,
  );
  await pause(2_000);
  await endpoints.takeAll(names);
}

async function fetchDelete(id: string): Promise<void> {
  await fetch(`${posthorn.apiUrl}/v1/webhooks/subscriptions/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${posthorn.apiKey}` },
  });
}

async function storm(capacity: number): Promise<void> {
  // What the limit promises can only be seen where the engine could do more.
  const limit = Math.min(50, Math.floor(capacity / 2));
  const count = limit * 100;
  say(`a storm of ${count} events to one endpoint limited to ${limit}/s`);
  const name = 'storm';
  await api.subscribe(endpoints.url(name), name, { rate_limit_per_second: limit });
  const perSecond = Math.max(1, capacity / 8);
  await settled();
  const alone = await steady(healthy, perSecond, spellMs);
  await api.publishMany(name, count);
  const arrivals: Arrival[] = [];
  await endpoints.behave(name, 'ok');
  await pause(5_000);
  const beside = await steady(healthy, perSecond, spellMs);
  arrivals.push(...(await endpoints.take(name)));
  const lastMs = Math.max(...arrivals.map(({ atMs }) => atMs));
  const rates = [3, 2, 1].map((windows) => {
    const from = lastMs - windows * 10_000;
    return arrivals.filter(({ atMs }) => atMs > from && atMs <= from + 10_000).length / 10;
  });
  const worst = Math.max(...rates.map((rate) => Math.abs(rate / limit - 1)));
  lines.push({
    what: `received rate of an endpoint limited to ${limit}/s, over 10 s`,
    figure: `${rates.map((rate) => rate.toFixed(1)).join(' · ')} /s`,
    target: `within 2 % of ${limit}/s`,
    met: worst <= 0.02,
  });
  const ratio = percentile(beside, 0.99) / percentile(alone, 0.99);
  lines.push({
    what: 'others’ p99 during the storm',
    figure: `${ratio.toFixed(2)} ×`,
    target: '≤ 1.5 × that before it',
    met: ratio <= 1.5,
  });
  // Now each delivery fails once: retries and fresh ones share the limit.
  await endpoints.behave(name, 'down at first');
  await pause(15_000);
  const mixed = await endpoints.take(name);
  const from = Math.max(...mixed.map(({ atMs }) => atMs)) - 5_000;
  const recent = mixed.filter(({ atMs }) => atMs > from);
  const retries = recent.filter(({ attempt }) => attempt > 1).length;
  const fresh = recent.length - retries;
  lines.push({
    what: 'retries and fresh deliveries advance together, in 5 s',
    figure: `${retries} and ${fresh}`,
    target: 'both',
    met: retries > 0 && fresh > 0,
  });
}

async function comeback(): Promise<void> {
  say('500 deliveries wait for an endpoint to come back');
  const name = 'down';
  await endpoints.behave(name, 'down');
  const { id } = await api.subscribe(endpoints.url(name), name);
  await api.publishMany(name, 500);
  await until(
    'it is taken for down',
    async () =>
      (await api.call<{ data: unknown[] }>('GET', `/v1/webhook-deliveries?endpoint_id=${id}&status=held&limit=250`))
        .data.length === 250,
    60_000,
  );
  await pause(15_000);
  const before = await endpoints.take(name);
  await endpoints.behave(name, 'ok');
  const after: Arrival[] = [];
  await until(
    'all are delivered',
    async () => {
      after.push(...(await endpoints.take(name)));
      return after.filter(({ ok }) => ok).length >= 500;
    },
    300_000,
  );
  await pause(3_000);
  after.push(...(await endpoints.take(name)));
  const good = after.filter(({ ok }) => ok);
  const first = Math.min(...good.map(({ atMs }) => atMs));
  const peak = good.filter(({ atMs }) => atMs < first + 1_000).length;
  const once = new Set(good.map(({ deliveryId }) => deliveryId)).size;
  lines.push({
    what: 'requests in the first second after a recovery',
    figure: String(peak),
    target: '≤ 5',
    met: peak <= 5,
  });
  lines.push({
    what: `of 500 that waited (${before.length} requests while it was down)`,
    figure: `${once} delivered, ${good.length - once} twice`,
    target: '500 delivered, none twice',
    met: once === 500 && good.length === 500,
  });
  const tookMs = Math.max(...good.map(({ atMs }) => atMs)) - first;
  say(`  all within ${(tookMs / 1_000).toFixed(1)} s of the first`);
}
