import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  isGrpcServiceError,
} from '@temporalio/client';
import { status } from '@grpc/grpc-js';
import { TypedSearchAttributes } from '@temporalio/common';
import { deadLetterQueueSignals } from '../../workflows/contracts/dead-letter-queue.js';
import { deliverSignals } from '../../workflows/contracts/deliver.js';
import { endpointHealthSignals } from '../../workflows/contracts/endpoint-health.js';
import { replaySignals } from '../../workflows/contracts/replay.js';
import { fairAmongEndpoints } from '../../workflows/contracts/fairness.js';
import {
  deadLetterQueueWorkflowId,
  deliverWorkflowId,
  endpointHealthWorkflowId,
  replayWorkflowId,
  type StartedBy,
  startedByMemo,
  taskQueues,
  workflowTypes,
} from '../../workflows/contracts/names.js';
import { labelAttributes } from '../../workflows/contracts/search-attributes.js';
import type { Logger } from '../telemetry/logger.js';
import type { TemporalConnection } from './connection.js';
import { registerSearchAttributes } from './search-attributes.js';

/** What the start of a delivery's workflow needs; all of it comes from the row. */
export interface DeliveryStart {
  readonly id: string;
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  readonly url?: string | undefined;
}

export type RunState = 'running' | 'closed' | 'terminated' | 'not_found';
export type StartResult = 'started' | 'already_there';

/** Temporal isn't connected yet. */
export class TemporalAwayError extends Error {
  override readonly name = 'TemporalAwayError';
  constructor() {
    super('Temporal is not connected');
  }
}

export interface GatewayOptions {
  readonly workflowTaskTimeoutMs?: number | undefined;
  readonly alertWindowMs: number;
}

/** The one place from which the rest of the code starts, signals and describes workflows. */
export class TemporalGateway {
  constructor(
    private readonly connection: TemporalConnection,
    private readonly log: Logger,
    private readonly options: GatewayOptions,
  ) {}

  /**
   * Starts a delivery's workflow, never a second one beside it. `first`: only where there never was one (dispatcher, sweeper).
   * `again`: where the last one is closed although the row is open.
   */
  async startDelivery(delivery: DeliveryStart, by: StartedBy, which: 'first' | 'again'): Promise<StartResult> {
    const start = (attributes: boolean): Promise<unknown> =>
      this.client.workflow.start(workflowTypes.deliver, {
        ...this.deliverOptions(delivery, by, attributes),
        workflowIdReusePolicy: which === 'first' ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE',
        workflowIdConflictPolicy: 'FAIL',
        requestEagerStart: this.connection.startsEagerly,
      });
    try {
      await this.withAttributes(start);
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'already_there';
      throw error;
    }
  }

  /** Wakes the delivery's workflow, or starts it: the row says already what it is to do. */
  async redeliver(delivery: DeliveryStart): Promise<void> {
    await this.withAttributes((attributes) =>
      this.client.workflow.signalWithStart(workflowTypes.deliver, {
        ...this.deliverOptions(delivery, 'redelivery', attributes),
        signal: deliverSignals.retryNow,
        signalArgs: [],
      }),
    );
  }

  /** Wakes a running workflow; false when none runs. */
  async retryNow(deliveryId: string): Promise<boolean> {
    return this.unlessGone(() =>
      this.client.workflow.getHandle(deliverWorkflowId(deliveryId)).signal(deliverSignals.retryNow),
    );
  }

  /** Tells the delivery's workflow that this round was cancelled; false when none runs. */
  async cancelRound(deliveryId: string, round: number): Promise<boolean> {
    return this.unlessGone(() =>
      this.client.workflow.getHandle(deliverWorkflowId(deliveryId)).signal(deliverSignals.cancel, round),
    );
  }

  /** Requests the cancellation of a delivery's workflow, or of just this run of it; false when none runs. */
  async cancel(deliveryId: string, runId?: string): Promise<boolean> {
    return this.unlessGone(() => this.client.workflow.getHandle(deliverWorkflowId(deliveryId), runId).cancel());
  }

  /** By id, never by a visibility list, which lags. */
  async describe(deliveryId: string): Promise<RunState> {
    return this.describeWorkflow(deliverWorkflowId(deliveryId));
  }

  async describeReplay(replayId: string): Promise<RunState> {
    return this.describeWorkflow(replayWorkflowId(replayId));
  }

  /** Tells the replay's workflow that something changed, or starts it: which replay it is and how far it got, Postgres knows. */
  async replayChanged(replayId: string): Promise<void> {
    await this.client.workflow.signalWithStart(workflowTypes.replay, {
      workflowId: replayWorkflowId(replayId),
      taskQueue: taskQueues.control,
      args: [{ replayId }],
      staticSummary: `replay ${replayId}`,
      signal: replaySignals.wake,
      signalArgs: [],
    });
  }

  private async describeWorkflow(workflowId: string): Promise<RunState> {
    try {
      const { status } = await this.client.workflow.getHandle(workflowId).describe();
      if (status.name === 'RUNNING') return 'running';
      return status.name === 'TERMINATED' ? 'terminated' : 'closed';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'not_found';
      throw error;
    }
  }

  /** Tells the endpoint's dead-letter queue that there are letters. */
  async letterAdded(endpointId: string): Promise<void> {
    await this.client.workflow.signalWithStart(workflowTypes.deadLetterQueue, {
      workflowId: deadLetterQueueWorkflowId(endpointId),
      taskQueue: taskQueues.control,
      args: [{ endpointId, windowMs: this.options.alertWindowMs }],
      staticSummary: `dead letters of ${endpointId}`,
      signal: deadLetterQueueSignals.letterAdded,
      signalArgs: [],
    });
  }

  /** Tells the endpoint's workflow that something changed, or starts it. */
  async endpointChanged(endpointId: string): Promise<void> {
    await this.withAttributes((attributes) =>
      this.client.workflow.signalWithStart(workflowTypes.endpointHealth, {
        workflowId: endpointHealthWorkflowId(endpointId),
        taskQueue: taskQueues.control,
        args: [{ endpointId }],
        staticSummary: `health of ${endpointId}`,
        signal: endpointHealthSignals.changed,
        signalArgs: [],
        ...(attributes ? { typedSearchAttributes: new TypedSearchAttributes(labelAttributes({ endpointId })) } : {}),
      }),
    );
  }

  /** Tells one Temporal store from another: a wiped one knows nothing of the workflows that we count on. */
  async storeId(): Promise<string | null> {
    const { namespaceInfo } = await this.client.workflowService.describeNamespace({
      namespace: this.connection.namespace,
    });
    return namespaceInfo?.id ?? null;
  }

  private deliverOptions(delivery: DeliveryStart, by: StartedBy, attributes: boolean) {
    return {
      workflowId: deliverWorkflowId(delivery.id),
      taskQueue: taskQueues.deliver,
      args: [{ deliveryId: delivery.id }],
      priority: fairAmongEndpoints(delivery.endpointId),
      memo: { [startedByMemo]: by },
      staticSummary: delivery.url ? `${delivery.type} → ${hostOf(delivery.url)}` : delivery.type,
      ...(this.options.workflowTaskTimeoutMs === undefined
        ? {}
        : { workflowTaskTimeout: this.options.workflowTaskTimeoutMs }),
      ...(attributes
        ? {
            typedSearchAttributes: new TypedSearchAttributes(
              labelAttributes({ ...delivery, eventType: delivery.type }),
            ),
          }
        : {}),
    };
  }

  /** A start refused for an unknown attribute registers them and tries once more, then starts without: labels are not worth a delivery. */
  private async withAttributes(start: (attributes: boolean) => Promise<unknown>): Promise<void> {
    try {
      await start(true);
      return;
    } catch (error) {
      if (!isInvalidArgument(error)) throw error;
      this.log.warn({ err: error }, 'a start was refused: registering the search attributes and trying once more');
    }
    await registerSearchAttributes(this.client, this.connection.namespace, this.log).catch((error: unknown) =>
      this.log.warn({ err: error }, 'search attributes could not be registered'),
    );
    try {
      await start(true);
    } catch (error) {
      if (!isInvalidArgument(error)) throw error;
      await start(false);
    }
  }

  private async unlessGone(call: () => Promise<unknown>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }

  private get client(): Client {
    const { client } = this.connection;
    if (!client) throw new TemporalAwayError();
    return client;
  }
}

function isInvalidArgument(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return isGrpcServiceError(cause) && cause.code === status.INVALID_ARGUMENT;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
