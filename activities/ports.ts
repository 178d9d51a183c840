import type { EndpointCaller } from '../src/contact/endpoint-caller.js';
import type { AttemptStore } from '../src/database/attempt-store.js';
import type { DeadLetterStore } from '../src/database/dead-letter-store.js';
import type { DeliveryStore } from '../src/database/delivery-store.js';
import type { EndpointHealthStore } from '../src/database/endpoint-health-store.js';
import type { NoticeStore } from '../src/database/notice-store.js';
import type { PaceStore } from '../src/database/pace-store.js';
import type { ReconcileStore } from '../src/database/reconcile-store.js';
import type { RetentionStore } from '../src/database/retention-store.js';
import type { ReplayedDelivery, ReplayStore } from '../src/database/replay-store.js';
import type { ClosedDelivery, WaitingDeliveries } from '../src/database/waiting-deliveries.js';
import type { OutboundAnswer } from '../src/delivery/delivery-client.js';
import type { SealedTexts } from '../src/delivery/open-endpoint.js';
import type { OutboundRequest } from '../src/delivery/outbound.js';
import type { PayloadShaper } from '../src/payload/payload-shaper.js';
import type { Mailer } from '../src/mail/mailer.js';
import type { DeliveryReason, TerminalStatus } from '../src/domain/closed-lists.js';
import type { Logger } from '../src/telemetry/logger.js';
import type { CountedAttempt } from '../src/telemetry/metrics.js';
import type { AttemptFacts, AttemptSpan } from '../src/telemetry/tracing.js';

/** Where an attempt is sent from; the address policy sits in its connect path. */
export interface Sender {
  /** Never rejects: every way in which a request can end is an answer. */
  send(request: OutboundRequest): Promise<OutboundAnswer>;
}

/** What the activities tell Temporal afterwards. */
export interface Announcer {
  /** These three never fail: the sweeper does what got lost. */
  letterAdded(endpointId: string): Promise<void>;
  endpointChanged(endpointId: string): Promise<void>;
  deliveriesClosed(closed: readonly ClosedDelivery[]): void;
  /** Requests the cancellation of one run. Throws when Temporal is away. */
  cancelRun(deliveryId: string, runId: string): Promise<void>;
}

/** What starts the workflow of a delivery that is written already. */
export interface DeliveryStarter {
  /** Throws when Temporal is away. */
  startDelivery(delivery: ReplayedDelivery, by: 'replay', which: 'again'): Promise<unknown>;
}

/** What Temporal knows of deliveries. */
export interface DeliveryRunList {
  /** Ids of deliveries whose workflow was started since then, `limit` runs at most. Throws when Temporal can't list. */
  startedSince(since: Date, limit: number): Promise<string[]>;
}

export interface AttemptSettings {
  /** Replaces the profiles' schedules, for trials and tests. */
  readonly retryWaitsMs: readonly number[] | null;
  readonly refusedWaitMs: number;
  readonly letterExpiryMs: number;
  /** Requests in flight to one endpoint, in this process, where the endpoint doesn't say. */
  readonly maxInFlight: number;
}

/** Who watches attempts: traces and figures. None of it fails. */
export interface AttemptWatch {
  startAttempt(facts: AttemptFacts): AttemptSpan;
  attemptRecorded(attempt: CountedAttempt): void;
  /** Nothing left the machine: no attempt is spent, and the same is tried again. */
  attemptNotSent(cause: string): void;
  deliveryClosed(status: TerminalStatus, reason: DeliveryReason): void;
}

/** All that activities work with; they never meet Nest, TypeORM or undici. */
export interface ActivityDependencies {
  readonly attempts: AttemptStore;
  readonly deliveries: DeliveryStore;
  readonly waiting: WaitingDeliveries;
  readonly letters: DeadLetterStore;
  readonly paces: PaceStore;
  readonly health: EndpointHealthStore;
  readonly notices: NoticeStore;
  readonly replays: ReplayStore;
  readonly starter: DeliveryStarter;
  readonly retention: RetentionStore;
  readonly reconciliation: ReconcileStore;
  readonly deliveryRuns: DeliveryRunList;
  /** Null where nobody sends mails. */
  readonly mailer: Mailer | null;
  readonly caller: EndpointCaller;
  readonly sender: Sender;
  readonly payloads: Pick<PayloadShaper, 'shape'>;
  readonly announcer: Announcer;
  readonly secrets: SealedTexts;
  readonly settings: AttemptSettings;
  readonly log: Logger;
  /** Absent: nobody watches. */
  readonly watch?: AttemptWatch;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
