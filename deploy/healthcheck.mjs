#!/usr/bin/env node
/**
 * Health of the container that it runs in: `node deploy/healthcheck.mjs api` or `worker`. Exit code 0 is healthy.
 * The API is healthy while it can accept events. A worker is healthy while it polls; with Temporal away it waits, and a
 * restart would not help.
 */
import { hostname } from 'node:os';
import { Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { loadConfig } from '../dist/src/config/config.js';
import { taskQueues } from '../dist/workflows/contracts/names.js';

const timeoutMs = 5_000;
/** A poll lasts a minute at most, and the server notes its beginning. */
const silentForMs = 150_000;
const { TASK_QUEUE_TYPE_WORKFLOW: workflowTasks, TASK_QUEUE_TYPE_ACTIVITY: activityTasks } =
  proto.temporal.api.enums.v1.TaskQueueType;

const checks = { api: checkApi, worker: checkWorker };
const [kind = ''] = process.argv.slice(2);
const check = checks[kind];
if (!check) end(2, 'Usage: node deploy/healthcheck.mjs api|worker');
try {
  await check();
} catch (error) {
  end(1, error instanceof Error ? error.message : String(error));
}

async function checkApi() {
  const { http } = loadConfig('api');
  const response = await fetch(`http://127.0.0.1:${http.port}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
  end(response.ok ? 0 : 1, await response.text());
}

async function checkWorker() {
  const { temporal } = loadConfig('worker');
  const connection = await Connection.connect({ address: temporal.address, connectTimeout: timeoutMs }).catch(
    () => null,
  );
  if (!connection) end(0, `Temporal is away (${temporal.address}); the worker waits for it.`);
  const wanted = [
    [taskQueues.deliver, workflowTasks],
    [taskQueues.attempts, activityTasks],
    [taskQueues.control, workflowTasks],
  ];
  const silent = [];
  for (const [name, taskQueueType] of wanted) {
    const { pollers } = await connection.withDeadline(Date.now() + timeoutMs, () =>
      connection.workflowService.describeTaskQueue({
        namespace: temporal.namespace,
        taskQueue: { name },
        taskQueueType,
      }),
    );
    if (!(pollers ?? []).some(isOurs)) silent.push(name);
  }
  await connection.close();
  if (silent.length > 0) end(1, `The worker doesn't poll ${silent.join(', ')}.`);
  end(0, 'The worker polls.');
}

/** A worker's identity is `<pid>@<host>`. */
function isOurs({ identity, lastAccessTime }) {
  const lastSeenMs = Number(lastAccessTime?.seconds ?? 0) * 1_000;
  return String(identity).endsWith(`@${hostname()}`) && Date.now() - lastSeenMs < silentForMs;
}

function end(code, text) {
  process.stdout.write(`${text}\n`);
  process.exit(code);
}
