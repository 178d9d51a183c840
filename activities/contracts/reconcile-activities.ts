import type { Findings } from '../../src/domain/findings.js';

export interface ComparedRows extends Findings {
  readonly examined: number;
  /** Where to go on; null when all of the window was looked at. */
  readonly after: string | null;
}

export interface CompareInput {
  /** The window's beginning, RFC 3339. */
  readonly from: string;
  readonly after: string | null;
}

/** Where a run begins: by the database's clock and the last report. */
export interface ReconcilePlan {
  readonly startedAt: string;
  readonly from: string;
  /** Where an earlier run stopped that could not look at all. */
  readonly deliveriesAfter: string | null;
  readonly eventsAfter: string | null;
  /** Workflows that were started before then were compared already. */
  readonly workflowsFrom: string;
  /** As the last report has it. */
  readonly lost: LostDeliveries | null;
}

export interface ReconcileReport extends Findings {
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly from: string;
  /** Rows and workflows that were looked at; null: Temporal could not be asked. */
  readonly examined: { readonly deliveries: number; readonly events: number; readonly workflows: number | null };
  /** Set where not all of the window was looked at: the next run goes on there. */
  readonly deliveriesAfter: string | null;
  readonly eventsAfter: string | null;
  /** More workflows had been started than were looked at. */
  readonly workflowsCut: boolean;
  /** The last time that Temporal knew deliveries that Postgres doesn't. Kept, since the next run doesn't see them again. */
  readonly lost: LostDeliveries | null;
}

export interface LostDeliveries {
  readonly foundAt: string;
  readonly count: number;
  readonly examples: readonly string[];
}

export interface ComparedWorkflows {
  readonly examined: number;
  readonly cut: boolean;
  readonly unknown: number;
  readonly examples: readonly string[];
}

/** Ordinary activities on `posthorn-control`. Whatever they repair is safe to repeat. */
export interface ReconcileActivities {
  planReconciliation(): Promise<ReconcilePlan>;
  /** What an index shows at once, however old it is. */
  repairWaiting(): Promise<Findings>;
  /** Some seconds' worth of deliveries of the window. */
  compareDeliveries(input: CompareInput): Promise<ComparedRows>;
  /** Some seconds' worth of events of the window. */
  compareEvents(input: CompareInput): Promise<ComparedRows>;
  /** Does Temporal know deliveries that Postgres doesn't? */
  compareWorkflows(input: { readonly from: string }): Promise<ComparedWorkflows>;
  keepReport(report: ReconcileReport): Promise<void>;
}
