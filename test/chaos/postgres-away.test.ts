import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { makeTestDataDir, startTestPostgres } from '../support/engines.js';
import { HeldAnswers } from '../support/held-answers.js';
import {
  type Answerer,
  type ApiAnswer,
  type ApiClient,
  createNamespace,
  RecordingReceiver,
  testEnv,
  until,
} from '../support/posthorn.js';
import { everythingSucceeds, Processes } from '../support/processes.js';

const outageMs = 30_000;
const processes = new Processes();
const dataDir = makeTestDataDir();
const answers = new Map<string, Answerer>();
let postgres: Awaited<ReturnType<typeof startTestPostgres>>;
let receiver: RecordingReceiver;
let env: Record<string, string>;

beforeAll(async () => {
  postgres = await startTestPostgres({ durable: true, dataDir });
  env = testEnv({
    databaseUrl: postgres.url,
    temporalAddress: inject('temporalAddress'),
    namespace: await createNamespace(),
  });
  receiver = await RecordingReceiver.start((request, reply, count) => {
    const answer = answers.get(request.path);
    if (answer) answer(request, reply, count);
    else reply.writeHead(200).end();
  });
});
afterAll(async () => {
  await processes.killAll();
  await postgres.stop({ graceMs: 0 });
  await receiver.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const says =
  (status: number): Answerer =>
  (_, reply) =>
    void reply.writeHead(status).end();

/** A request in flight at an endpoint of its own. */
async function inFlight(api: ApiClient, name: string) {
  const held = new HeldAnswers();
  answers.set(`/${name}`, held.answer);
  await api.createEndpoint(`${receiver.url}/${name}`, [`flight.${name}`], {
    timeout_ms: 30_000,
    retry_waits_ms: [500, 500],
  });
  const id = (await api.publish(`flight.${name}`)).deliveries[0]!.id;
  await held.arrived();
  answers.set(`/${name}`, says(200));
  return { id, held };
}

const status = async (api: ApiClient, id: string): Promise<string> => (await api.delivery(id)).status;

describe('Postgres is killed for half a minute', () => {
  it('and nothing is half-done, nothing is lost, and what was answered is not sent again', async () => {
    const { api } = await processes.api(env);
    await processes.worker(env);
    const { id: endpointId } = await api.createEndpoint(`${receiver.url}/traffic`, ['traffic.sent']);
    await api.createEndpoint(`${receiver.url}/retried`, ['waiting.retried'], { retry_waits_ms: [4_000, 1_000] });
    answers.set('/retried', says(500));
    const retried = (await api.publish('waiting.retried')).deliveries[0]!.id;
    await until('one waits', async () => (await status(api, retried)) === 'retrying');
    answers.set('/retried', says(200));
    const accepts = await inFlight(api, 'accepts');
    const refuses = await inFlight(api, 'refuses');

    /** By idempotency key: what was sent, and every answer. */
    const sent: { readonly key: string; readonly body: string; readonly answers: ApiAnswer[] }[] = [];
    const publish = async (n: number) => {
      const entry = { key: `key-${n}`, body: JSON.stringify({ type: 'traffic.sent', data: { n } }), answers: [] };
      sent.push(entry);
      await repeat(entry);
    };
    const repeat = async (entry: (typeof sent)[number]) => {
      entry.answers.push(await api.post('/v1/events', entry.body, { 'idempotency-key': entry.key }));
    };
    const publishing = { goesOn: true };
    const traffic = Promise.all(
      Array.from({ length: 2 }, async (_, lane) => {
        for (let n = lane; publishing.goesOn; n += 2) {
          await publish(n);
          await new Promise((resolve) => setTimeout(resolve, 400));
        }
      }),
    );
    await until('traffic flows', async () => sent.length > 8);

    await postgres.stop({ graceMs: 0 });
    const diedAt = Date.now();
    accepts.held.release(200);
    refuses.held.release(500);
    await until('it is not ready', async () => (await api.get('/readyz')).status === 503);
    const anonymous = await api.post('/v1/events', { type: 'traffic.sent', id: 'evt-anonymous', data: {} });
    expect(anonymous.status).toBe(503);
    expect(anonymous.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(anonymous.body).toMatchObject({ status: 503, code: 'database_unavailable' });
    for (const path of ['/v1/webhook-deliveries', `/v1/webhook-deliveries/${retried}`, '/v1/webhooks/subscriptions'])
      expect((await api.get(path)).body).toMatchObject({ code: 'database_unavailable' });
    expect((await api.get('/healthz')).status).toBe(200);

    // A process that boots now waits for Postgres, and ends when it is told to.
    const impatient = processes.spawn('main', env);
    const patient = processes.spawn('worker', env);
    await impatient.says('Postgres is away');
    impatient.signal('SIGTERM');
    expect(await impatient.exit(10_000)).toBe(0);

    await until('the outage is over', async () => Date.now() - diedAt >= outageMs, outageMs + 5_000);
    postgres = await startTestPostgres({ durable: true, dataDir, port: postgres.port });
    const backAt = Date.now();
    await until('it is ready again', async () => (await api.get('/readyz')).status === 200);
    const readyAfterMs = Date.now() - backAt;
    publishing.goesOn = false;
    await traffic;

    expect(new Set(sent.map((entry) => entry.answers[0]!.status))).toEqual(new Set([202, 503]));
    const unsure = sent.filter((entry) => entry.answers[0]!.status === 503);
    await Promise.all(unsure.map(repeat));
    for (const { answers: both } of unsure) {
      expect(both[0]!.body).toMatchObject({ code: 'database_unavailable' });
      expect(both[1]!.status).toBe(202);
    }
    const promised = sent.map((entry) => entry.answers.at(-1)!.body.deliveries[0].id as string);
    expect(new Set(promised).size).toBe(sent.length);

    const stored = await everythingSucceeds(api, `endpoint_id=${endpointId}`, promised.length, 100_000);
    const allAfterMs = Date.now() - backAt;
    // Each key had one effect, and there is no event beside them.
    expect(stored.map(({ id }) => id).toSorted()).toEqual(promised.toSorted());
    // In flight when Postgres died: answered, and recorded later. Only what had no answer yet may come twice.
    for (const id of promised) expect(receiver.of(id), id).toHaveLength(1);

    await until('the waiting one went on', async () => (await status(api, retried)) === 'succeeded', 60_000);
    expect(receiver.of(retried)).toHaveLength(2);
    await until('the acceptance is recorded', async () => (await status(api, accepts.id)) === 'succeeded', 60_000);
    expect(receiver.of(accepts.id)).toHaveLength(1);
    expect(await api.attempts(accepts.id)).toMatchObject([{ number: 1, status_code: 200 }]);
    await until(
      'the refusal was followed by a retry',
      async () => (await status(api, refuses.id)) === 'succeeded',
      60_000,
    );
    expect(await api.attempts(refuses.id)).toMatchObject([
      { number: 1, status_code: 500, error_code: 'http_status' },
      { number: 2, status_code: 200 },
    ]);
    await patient.says('workers poll');
    console.info(
      `${sent.length} publishes, ${unsure.length} of them 503; ready ${readyAfterMs} ms and all delivered ${allAfterMs} ms after Postgres was back`,
    );
  }, 180_000);
});
