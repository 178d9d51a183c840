import type { Client } from '@temporalio/client';
import { pause } from '../../src/pause.js';
import type { Published } from '../load/load.js';
import type { Subject } from '../subjects/subject.js';
import { PostgresMeter } from './postgres-counters.js';
import { cpuMsOf, cpuMsOfMachine, memoryBytesOf } from './processes.js';
import { percentile } from './statistics.js';
import { countWorkflows, type WorkflowCounters } from './workflow-counters.js';

/** Whose CPU time and memory it is. */
export type Part = 'subject' | 'postgres' | 'temporal' | 'receiver' | 'generator';
export const parts: readonly Part[] = ['subject', 'postgres', 'temporal', 'receiver', 'generator'];

/** One spell of one subject, in figures. What is per delivery counts all of the spell; rates count its window. */
export interface Figures {
  readonly acceptedPerSecond: number;
  readonly deliveredPerSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly cpuMsPerDelivery: Record<Part, number>;
  /** Of one CPU, over the spell. */
  readonly cpuShare: Record<Part, number>;
  readonly memoryMb: Record<Part, number>;
  /** CPUs that were busy with what is no part of the run: where it is much, the figures are worth little. */
  readonly othersCpus: number;
  readonly statementsPerDelivery: number | null;
  readonly transactionsPerDelivery: number | null;
  readonly walBytesPerDelivery: number | null;
  readonly serverWalBytesPerDelivery: number;
  readonly workflow: WorkflowCounters | null;
  readonly events: number;
  readonly delivered: number;
  readonly refused: number;
  readonly repeated: number;
}

/** After the last receipt, its record and the end of its workflow are still to come. */
const settleMs = 700;

export class Meter {
  constructor(
    private readonly pids: Record<Exclude<Part, 'subject'>, number>,
    private readonly postgres: PostgresMeter,
    private readonly temporal: (namespace: string) => Client,
  ) {}

  /** `deliveries` false: nothing is delivered, and "per delivery" reads per event. */
  async measure(subject: Subject, spell: () => Promise<Published>, deliveries = true): Promise<Figures> {
    const pids: Record<Part, readonly number[]> = {
      subject: subject.pids,
      postgres: [this.pids.postgres],
      temporal: [this.pids.temporal],
      receiver: [this.pids.receiver],
      generator: [this.pids.generator],
    };
    const database = subject.database ?? 'postgres';
    const countersBefore = await this.postgres.read(database);
    const cpuBefore = eachPart((part) => cpuMsOf(pids[part]));
    const othersBefore = othersCpuMs();
    const startedMs = performance.now();
    const published = await spell();
    await pause(settleMs);
    const tookMs = performance.now() - startedMs;
    const cpuMs = eachPart((part) => cpuMsOf(pids[part]) - cpuBefore[part]);
    const othersCpus = (othersCpuMs() - othersBefore) / tookMs;
    const counters = await this.postgres.read(database);
    const { arrivals, workflowIds } = await subject.take();
    const { windowFromUs, windowToUs } = published;
    const inWindow = arrivals.latencyUs.filter((_, index) => {
      const atUs = arrivals.atUs[index]!;
      return atUs >= windowFromUs && atUs < windowToUs;
    });
    const latencies = published.latenciesOfAll ? arrivals.latencyUs : inWindow;
    const windowSeconds = (windowToUs - windowFromUs) / 1e6;
    const delivered = arrivals.atUs.length;
    const per = (value: number): number => value / Math.max(1, deliveries ? delivered : published.accepted);
    const own = subject.database !== null;
    return {
      acceptedPerSecond: published.acceptedInWindow / windowSeconds,
      deliveredPerSecond: inWindow.length / windowSeconds,
      p50Ms: percentile(latencies, 0.5) / 1e3,
      p95Ms: percentile(latencies, 0.95) / 1e3,
      p99Ms: percentile(latencies, 0.99) / 1e3,
      cpuMsPerDelivery: eachPart((part) => per(cpuMs[part])),
      cpuShare: eachPart((part) => cpuMs[part] / tookMs),
      memoryMb: eachPart((part) => memoryBytesOf(pids[part]) / 2 ** 20),
      othersCpus,
      statementsPerDelivery: own ? per(counters.statements - countersBefore.statements) : null,
      transactionsPerDelivery: own ? per(counters.transactions - countersBefore.transactions) : null,
      walBytesPerDelivery: own ? per(counters.walBytes - countersBefore.walBytes) : null,
      serverWalBytesPerDelivery: per(counters.serverWalBytes - countersBefore.serverWalBytes),
      workflow:
        subject.namespace === null || !deliveries
          ? null
          : await countWorkflows(this.temporal(subject.namespace), workflowIds),
      events: published.accepted,
      delivered,
      refused: published.refused,
      repeated: arrivals.repeated,
    };
  }
}

/** Everything that a run starts is below this process. */
const othersCpuMs = (): number => cpuMsOfMachine() - cpuMsOf([process.pid]);

function eachPart(value: (part: Part) => number): Record<Part, number> {
  return Object.fromEntries(parts.map((part) => [part, value(part)])) as Record<Part, number>;
}
