import type { Arrivals, Published, Saturation, Steadiness } from '../load/load.js';

export type SubjectName = 'a' | 'b' | 'b-prime' | 'c' | 'default' | 'express';

/** Something that is measured: Posthorn in one of its lanes, or what it is compared with. */
export interface Subject {
  readonly name: SubjectName;
  readonly title: string;
  /** Its processes, whose CPU time and memory are its own. */
  readonly pids: readonly number[];
  /** Null where it needs none. */
  readonly database: string | null;
  /** Whether each delivery has a workflow. */
  readonly namespace: string | null;
  /** Publishes, and returns when all has arrived or a minute has passed. */
  saturate(load: Saturation): Promise<Published>;
  steady(load: Steadiness): Promise<Published>;
  /** The arrivals of the last spell, and ids of workflows among them. */
  take(): Promise<{ readonly arrivals: Arrivals; readonly workflowIds: readonly string[] }>;
  stop(): Promise<void>;
}

export const titles: Record<SubjectName, string> = {
  a: '(a) bare workflow, ordinary no-op activity',
  b: '(b) bare eager workflow, local no-op activity',
  'b-prime': "(b') = (b) + Posthorn's statements + POST",
  c: '(c) minimal loop without engine or framework',
  default: 'Posthorn, default lane',
  express: 'Posthorn, express lane',
};
