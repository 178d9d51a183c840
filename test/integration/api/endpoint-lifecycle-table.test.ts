import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { type ApiAnswer, RecordingReceiver } from '../../support/posthorn.js';

let posthorn: RunningApi;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startApi({ extra: { POSTHORN_VERIFICATION_REQUIRED: 'on' } });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await posthorn.stop();
  await receiver.stop();
});

const path = '/v1/webhooks/subscriptions';
const inAYear = () => new Date(Date.now() + 365 * 86_400_000).toISOString();

interface Given {
  readonly id: string;
  readonly type: string;
  /** A delivery that waited for the endpoint before it came into its state. */
  readonly waiting: string;
  /** One that was closed by then. */
  readonly closed: string;
}

const states = {
  '`pending_verification`': async () => undefined,
  '`active`': verified,
  '`paused`': async ({ id }: Given) => {
    await verified({ id });
    expect((await posthorn.api.post(`${path}/${id}/pause`)).status).toBe(200);
  },
  '`disabled` (`failing`)': async ({ id }: Given) => {
    await verified({ id });
    await posthorn.sql(`update endpoints set failing_since = now() - interval '8 d' where id = $1`, [id]);
    await posthorn.core.health.disable(id);
  },
  '`disabled` (`gone`)': async ({ id, waiting }: Given) => {
    await verified({ id });
    await answered410(waiting);
  },
  '`disabled` (`verification_expired`)': async ({ id }: Given) => {
    await posthorn.sql(
      `update endpoint_checks set started_at = now() - interval '73 h' where endpoint_id = $1 and kind = 'verification'`,
      [id],
    );
    await posthorn.core.health.expireVerification(id);
  },
  '`expired`': async ({ id }: Given) => {
    await verified({ id });
    await posthorn.sql(`update endpoints set expires_at = now() - interval '1 s' where id = $1`, [id]);
    await posthorn.core.health.expire(id);
  },
  deleted: async ({ id }: Given) => void (await posthorn.api.delete(`${path}/${id}`)),
} as const;
type State = keyof typeof states;
const stateNames = Object.keys(states) as State[];

const act =
  (name: string, body?: unknown) =>
  async ({ id }: Given) =>
    posthorn.api.post(`${path}/${id}/${name}`, body);
const actions = {
  'publish an event': ({ type }: Given) => posthorn.api.post('/v1/events', { type, data: {} }),
  '`verify`': act('verify'),
  '`ping`': act('ping'),
  '`test`': act('test'),
  '`pause`': act('pause'),
  '`resume`': act('resume'),
  '`enable`': act('enable'),
  '`renew`': ({ id }: Given) => posthorn.api.post(`${path}/${id}/renew`, { expires_at: inAYear() }),
  '`PATCH`': ({ id }: Given) => posthorn.api.call('PATCH', `${path}/${id}`, { description: 'another' }),
  '`PATCH` of `url`': ({ id }: Given) => posthorn.api.call('PATCH', `${path}/${id}`, { url: `${receiver.url}/moved` }),
  'rotate the secret': act('secrets'),
  '`DELETE`': ({ id }: Given) => posthorn.api.delete(`${path}/${id}`),
  '`redeliver` a closed delivery': ({ closed }: Given) =>
    posthorn.api.post(`/v1/webhook-deliveries/${closed}/redeliver`),
  '`cancel` what waited before': ({ waiting }: Given) => posthorn.api.post(`/v1/webhook-deliveries/${waiting}/cancel`),
} as const;
type Action = keyof typeof actions;
const actionNames = Object.keys(actions) as Action[];

const conflict = '409 `endpoint_state_conflict`';
const unavailable = '409 `endpoint_unavailable`';
const verifiedAlready = '409 `already_verified`';
const closedAlready = '409 `delivery_closed`';
const missing = '404 `not_found`';

/** A column for each state, in their order: status, code of a refusal, what became of the delivery, and → the new state. */
const table: Readonly<Record<Action, readonly string[]>> = {
  'publish an event': ['202 `held`', '202 `pending`', '202 `held`', ...Array<string>(5).fill('202 none')],
  '`verify`': [
    '202',
    verifiedAlready,
    verifiedAlready,
    verifiedAlready,
    verifiedAlready,
    '202 → `pending_verification`',
    verifiedAlready,
    missing,
  ],
  '`ping`': [...Array<string>(7).fill('200'), missing],
  '`test`': [...Array<string>(7).fill('200'), missing],
  '`pause`': ['200 → `paused`', '200 → `paused`', '200', conflict, conflict, conflict, conflict, missing],
  '`resume`': ['200', '200', '200 → `active`', conflict, conflict, conflict, conflict, missing],
  '`enable`': [
    '200',
    '200',
    conflict,
    '200 → `active`',
    '200 → `active`',
    '200 → `pending_verification`',
    conflict,
    missing,
  ],
  '`renew`': [...Array<string>(6).fill('200'), '200 → `active`', missing],
  '`PATCH`': [...Array<string>(7).fill('200'), missing],
  '`PATCH` of `url`': [
    '200',
    '200 → `pending_verification`',
    '200',
    '200',
    '200',
    '200 → `pending_verification`',
    '200',
    missing,
  ],
  'rotate the secret': [...Array<string>(7).fill('201'), missing],
  '`DELETE`': [...Array<string>(7).fill('204 → deleted'), missing],
  '`redeliver` a closed delivery': [unavailable, '202 `pending`', ...Array<string>(6).fill(unavailable)],
  '`cancel` what waited before': [...Array<string>(3).fill('202 `cancelled`'), ...Array<string>(5).fill(closedAlready)],
};

/** What an endpoint was given before it came into its state, by what really leads there. */
async function given(state: State): Promise<Given> {
  const type = `state.t${++types}`;
  const { id } = await posthorn.api.createEndpoint(`${receiver.url}/hook`, [type]);
  const [waiting, closed] = [await published(type), await published(type)];
  expect((await posthorn.api.post(`/v1/webhook-deliveries/${closed}/cancel`)).status).toBe(202);
  const endpoint = { id, type, waiting, closed };
  await states[state](endpoint);
  // What the endpoint's workflow does next.
  await posthorn.core.waiting.closeAllOf(id);
  expect(await stateOf(endpoint)).toBe(state);
  return endpoint;
}
let types = 0;

const published = async (type: string): Promise<string> => (await posthorn.api.publish(type)).deliveries[0]!.id;

async function verified({ id }: Pick<Given, 'id'>): Promise<void> {
  await posthorn.core.health.recordVerification({
    endpointId: id,
    url: `${receiver.url}/hook`,
    tries: 0,
    nextOffsetMs: 10_000,
    report: {
      passed: true,
      way: 'challenge',
      statusCode: 200,
      errorCode: null,
      errorMessage: null,
      body: Buffer.alloc(0),
      allowedRatePerMinute: null,
    },
  });
}

async function answered410(deliveryId: string): Promise<void> {
  await posthorn.core.attempts.record({
    id: `att_${deliveryId.slice(4)}`,
    deliveryId,
    runId: 'run',
    sequence: 1,
    round: 1,
    startedAt: new Date(),
    durationMs: 5,
    statusCode: 410,
    errorCode: 'http_status',
    errorMessage: 'answered 410',
    responseHeaders: [],
    responseBody: Buffer.alloc(0),
    responseTruncated: false,
    remoteAddress: null,
    resent: false,
    outcome: 'failed',
    gone: true,
    refused: false,
    waitMs: null,
    restMs: null,
    letterExpiryMs: 86_400_000,
    probeRestMs: 1_000,
  });
}

async function stateOf({ id }: Given): Promise<string> {
  const { status, body } = await posthorn.api.get(`${path}/${id}`);
  if (status === 404) return 'deleted';
  const reason = body.status === 'disabled' ? ` (\`${body.status_reason}\`)` : '';
  return `\`${body.status}\`${reason}`;
}

/** As the table writes it. */
async function outcome(endpoint: Given, before: State, { status, body }: ApiAnswer): Promise<string> {
  const after = await stateOf(endpoint);
  const told = status >= 400 ? `\`${body.code}\`` : deliveryIn(body);
  return [status, told, after === before ? null : `→ ${after}`].filter((part) => part !== null).join(' ');
}

/** What became of the delivery, where the answer is about one. */
function deliveryIn(body: { deliveries?: { status: string }[]; endpoint_id?: string; status?: string } | null) {
  if (body?.deliveries) return body.deliveries[0] ? `\`${body.deliveries[0].status}\`` : 'none';
  return body?.endpoint_id === undefined ? null : `\`${body.status}\``;
}

describe.each(stateNames)('an endpoint that is %s', (state) => {
  it.each(actionNames)('%s', async (action) => {
    const endpoint = await given(state);
    const answer = await actions[action](endpoint);
    expect(await outcome(endpoint, state, answer), answer.text).toBe(table[action][stateNames.indexOf(state)]);
  });
});

const rowOf = (action: Action): string[] => [action, ...table[action]];

describe('docs/guides/endpoint-states.md', () => {
  it('has this table', () => {
    const page = readFileSync(new URL('../../../docs/guides/endpoint-states.md', import.meta.url), 'utf8');
    const rows = page
      .split('## Every action in every state')[1]!
      .split('\n')
      .filter((line) => line.startsWith('|') && !/^\|[\s|-]+\|$/.test(line))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      );
    expect(rows).toEqual([['', ...stateNames], ...actionNames.map(rowOf)]);
  });
});
