import { Client, type WorkflowHandle } from '@temporalio/client';
import proto from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { inject } from 'vitest';
import './provided.js';
import type { TemporalConnection } from '../../src/temporal/connection.js';
import { TemporalGateway } from '../../src/temporal/gateway.js';
import { registerSearchAttributes } from '../../src/temporal/search-attributes.js';
import { installRuntime, WorkerHost } from '../../src/temporal/worker-host.js';
import type { deliver } from '../../workflows/deliver.workflow.js';
import { DeliveryModel, type ModelDelivery } from './delivery-model.js';
import { EndpointModel } from './endpoint-model.js';
import { findTemporalTestServer } from './temporal-test-server.js';

const nothing = (): void => undefined;
export const silentLog = { debug: nothing, info: nothing, warn: nothing, error: nothing };

let runtimeInstalled = false;

/** The real workflows, workers and gateway on a server that skips time, over the in-memory model of everything else. */
export class WorkflowEngine {
  private constructor(
    readonly env: TestWorkflowEnvironment,
    readonly model: DeliveryModel,
    /** Endpoints, seen from their health's workflows. */
    readonly endpoints: EndpointModel,
    readonly gateway: TemporalGateway,
    private readonly host: WorkerHost,
  ) {}

  static async start(options: { readonly alertWindowMs?: number } = {}): Promise<WorkflowEngine> {
    if (!runtimeInstalled) installRuntime(silentLog);
    runtimeInstalled = true;
    const env = await TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path: await findTemporalTestServer() } },
    });
    const namespace = env.namespace ?? 'default';
    const { connection } = env;
    await registerSearchAttributes(env.client, namespace, silentLog).catch(async () => {
      // The test server adds, but can't list.
      const keyword = proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
      const names = ['PosthornTenantId', 'PosthornEndpointId', 'PosthornEventType', 'PosthornEventId'];
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(names.map((name) => [name, keyword])),
      });
    });
    const client = new Client({ connection: env.nativeConnection, namespace });
    const connected = { client, namespace, startsEagerly: true } as unknown as TemporalConnection;
    const gateway = new TemporalGateway(connected, silentLog, { alertWindowMs: options.alertWindowMs ?? 60_000 });
    const model = new DeliveryModel(
      () => env.currentTimeMs(),
      async (deliveryId, runId) => void (await gateway.cancel(deliveryId, runId)),
    );
    const endpoints = new EndpointModel(() => env.currentTimeMs());
    const { deliver, attempts, control } = model.families;
    const host = await WorkerHost.start({
      connection: env.nativeConnection,
      namespace,
      activities: {
        deliver,
        attempts: { ...attempts, ...endpoints.activities.attempts },
        control: { ...control, ...endpoints.activities.control },
      },
      maxConcurrentAttempts: 50,
      log: silentLog,
      bundlePath: inject('workflowBundle'),
    });
    return new WorkflowEngine(env, model, endpoints, gateway, host);
  }

  handle(id: string): WorkflowHandle<typeof deliver> {
    return this.env.client.workflow.getHandle<typeof deliver>(id);
  }

  /** As the dispatcher does. */
  async dispatch(delivery: ModelDelivery): Promise<WorkflowHandle<typeof deliver>> {
    await this.gateway.startDelivery(delivery.start, 'dispatcher', 'first');
    return this.handle(delivery.id);
  }

  /** As a person does with the CLI: no memo, no search attributes. */
  async startByHand(id: string, input: unknown = { deliveryId: id }): Promise<WorkflowHandle<typeof deliver>> {
    await this.env.client.workflow.start('deliver', { workflowId: id, taskQueue: 'posthorn', args: [input] });
    return this.handle(id);
  }

  /** Runs through all waits to the end: how the workflow is closed, and the failure's type where it failed. */
  async ending(id: string): Promise<{ status: string; failure: string | null; result: unknown }> {
    const handle = this.handle(id);
    let result: unknown = null;
    let failure: string | null = null;
    try {
      result = await handle.result();
    } catch (error) {
      const cause = (error as { cause?: { type?: string } }).cause;
      failure = cause?.type ?? cause?.constructor.name ?? String(error);
    }
    return { status: (await handle.describe()).status.name, failure, result };
  }

  async stop(): Promise<void> {
    await this.host.stop();
    await this.env.teardown();
  }
}
