import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePorts } from '../../src/embedded/ports.js';
import { readProcess } from '../../src/embedded/process-identity.js';
import { findTestTemporalCli, makeTestDataDir } from '../support/engines.js';
import { HeldAnswers } from '../support/held-answers.js';
import { type Answerer, ApiClient, RecordingReceiver, testKey, until } from '../support/posthorn.js';
import { type PosthornProcess, Processes } from '../support/processes.js';

const processes = new Processes();
const dataDir = makeTestDataDir();
const answers = new Map<string, Answerer>();
let receiver: RecordingReceiver;
let env: Record<string, string>;
let api: ApiClient;

beforeAll(async () => {
  const [http, temporal, ui, postgres] = await findFreePorts(4);
  env = {
    POSTHORN_DATA_DIR: dataDir,
    POSTHORN_HTTP_PORT: String(http),
    POSTHORN_TEMPORAL_PORT: String(temporal),
    POSTHORN_TEMPORAL_UI_PORT: String(ui),
    POSTHORN_POSTGRES_PORT: String(postgres),
    POSTHORN_SAMPLE_RECEIVER: 'off',
    POSTHORN_BOOTSTRAP_API_KEY: testKey,
    POSTHORN_VERIFICATION_REQUIRED: 'off',
    TEMPORAL_CLI_PATH: await findTestTemporalCli(),
  };
  api = new ApiClient(`http://127.0.0.1:${http}`);
  receiver = await RecordingReceiver.start((request, reply, count) => {
    const answer = answers.get(request.path);
    if (answer) answer(request, reply, count);
    else reply.writeHead(200).end();
  });
});
afterAll(async () => {
  await processes.killAll();
  for (const pid of Object.values(children()).filter(isAlive)) process.kill(pid, 'SIGKILL');
  await receiver.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const says =
  (status: number): Answerer =>
  (_, reply) =>
    void reply.writeHead(status).end();
const isAlive = (pid: number): boolean => readProcess(pid) !== null;

async function start(): Promise<PosthornProcess> {
  const started = processes.spawn('standalone', env);
  await until(
    'it is ready',
    async () => {
      if (!started.isRunning) throw new Error(started.output);
      return (await api.get('/readyz')).body?.temporal === 'ok';
    },
    60_000,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${started.output}`);
  });
  return started;
}

/** The engines that run in the data directory, by name. */
function children(): Record<string, number> {
  const folder = join(dataDir, 'run');
  return Object.fromEntries(
    readdirSync(folder)
      .filter((file) => file.endsWith('.pid'))
      .map((file) => [
        file.slice(0, -'.pid'.length),
        (JSON.parse(readFileSync(join(folder, file), 'utf8')) as { pid: number }).pid,
      ]),
  );
}

async function endpoint(name: string, settings: Record<string, unknown> = {}): Promise<void> {
  await api.createEndpoint(`${receiver.url}/${name}`, [`case.${name}`], settings);
}
const publish = async (name: string): Promise<string> => (await api.publish(`case.${name}`)).deliveries[0]!.id;
const isSucceeded = (id: string) => async () => (await api.delivery(id)).status === 'succeeded';

describe('everything in one process', () => {
  let running: PosthornProcess;
  let waiting: string;
  let flight: string[];

  it('asked to stop, finishes the 20 requests in flight, and leaves no process behind', async () => {
    running = await start();
    await endpoint('waiting', { retry_waits_ms: [1_000, 1_000] });
    answers.set('/waiting', says(500));
    const held = new HeldAnswers();
    answers.set('/flight', held.answer);
    await endpoint('flight');
    flight = await Promise.all(Array.from({ length: 20 }, () => publish('flight')));
    await held.arrived(20);
    waiting = await publish('waiting');
    await until('one waits', async () => (await api.delivery(waiting)).status === 'retrying');
    answers.set('/waiting', says(200));
    const engines = children();
    expect(Object.keys(engines).toSorted()).toEqual(['postgres', 'temporal']);

    running.signal('SIGINT');
    const askedAt = Date.now();
    await until('the endpoint has taken its 3 s', async () => Date.now() - askedAt >= 3_000);
    expect(running.isRunning).toBe(true);
    held.release();
    expect(await running.exit()).toBe(0);
    console.info(`ended ${Date.now() - askedAt - 3_000} ms after the last answer`);
    expect(Object.values(engines).filter(isAlive)).toEqual([]);
    expect(children()).toEqual({});
  });

  it('started again, finds its data, and goes on with what waited', async () => {
    running = await start();
    await until('the waiting one is delivered', isSucceeded(waiting));
    expect(receiver.of(waiting)).toHaveLength(2);
    for (const id of flight) {
      expect(await api.delivery(id)).toMatchObject({ status: 'succeeded', attempt_count: 1 });
      expect(receiver.of(id)).toHaveLength(1);
    }
  });

  it('starts an engine again that was killed, and deliveries go on', async () => {
    await endpoint('engines', { retry_waits_ms: [500, 500, 500, 500] });
    for (const engine of ['temporal', 'postgres']) {
      const pid = children()[engine]!;
      process.kill(pid, 'SIGKILL');
      const killedAt = Date.now();
      await until(
        `${engine} is back`,
        async () => {
          const now = children()[engine];
          if (now === undefined || now === pid) return false;
          const { status, body } = await api.get('/readyz');
          return status === 200 && body.temporal === 'ok';
        },
        30_000,
      );
      console.info(`${engine} was back after ${Date.now() - killedAt} ms`);
      const id = await publish('engines');
      await until(`it delivers after ${engine} was killed`, isSucceeded(id), 30_000);
      expect(receiver.of(id)).toHaveLength(1);
    }
  });

  it('killed, leaves engines that the next start ends, and the next start works', async () => {
    answers.set('/killed', says(500));
    await endpoint('killed', { retry_waits_ms: [1_000, 1_000] });
    const id = await publish('killed');
    await until('it waits', async () => (await api.delivery(id)).status === 'retrying');
    answers.set('/killed', says(200));
    const orphans = children();
    await running.kill9();
    expect(Object.values(orphans).every(isAlive)).toBe(true);

    running = await start();
    expect(Object.values(orphans).filter(isAlive)).toEqual([]);
    await until('what waited is delivered', isSucceeded(id));
    expect(receiver.of(id)).toHaveLength(2);
  });

  it('asked twice, ends at once', async () => {
    const held = new HeldAnswers();
    answers.set('/twice', held.answer);
    await endpoint('twice');
    const id = await publish('twice');
    await held.arrived();
    const engines = children();
    running.signal('SIGINT');
    await running.says('Stopping');
    const askedAt = Date.now();
    running.signal('SIGINT');
    expect(await running.exit(5_000)).toBe(130);
    expect(Date.now() - askedAt).toBeLessThan(2_000);
    await until('its engines end with it', async () => !Object.values(engines).some(isAlive), 10_000);

    answers.set('/twice', says(200));
    running = await start();
    // Nobody knows what the endpoint made of the first request: it is made again.
    await until('the interrupted one is delivered', isSucceeded(id), 30_000);
    expect(receiver.of(id)).toHaveLength(2);
    running.signal('SIGTERM');
    expect(await running.exit()).toBe(0);
  });

  it('asked to stop while it starts, leaves no process behind', async () => {
    const starting = processes.spawn('standalone', env);
    const postgres = await until('Postgres is being started', async () => children()['postgres'], 30_000);
    starting.signal('SIGINT');
    expect(await starting.exit()).toBe(0);
    expect(isAlive(postgres)).toBe(false);
    expect(children()).toEqual({});
  });
});
