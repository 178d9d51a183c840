interface Lane<Job> {
  readonly key: string;
  readonly jobs: Job[];
  active: number;
}

export interface FairQueueLimits {
  /** Jobs that wait. */
  readonly waiting: number;
  /** Jobs of one key that are at work. */
  readonly activePerKey: number;
}

/** A bounded queue in which keys take turns, so that a burst of one delays no other. */
export class FairQueue<Job> {
  private readonly lanes = new Map<string, Lane<Job>>();
  /** Lanes whose first job may go to work, in the order of their turns. */
  private readonly ready = new Set<Lane<Job>>();
  private waiting = 0;

  constructor(private readonly limits: FairQueueLimits) {}

  /** Jobs that wait. */
  get size(): number {
    return this.waiting;
  }

  /** Where it is full, the newest job of the longest queue makes way: `displaced`. `refused` when that is this one. */
  add(key: string, job: Job): 'added' | 'displaced' | 'refused' {
    const lane = this.lanes.get(key) ?? { key, jobs: [], active: 0 };
    const isFull = this.waiting >= this.limits.waiting;
    if (isFull) {
      const longest = this.longest();
      if (!longest || longest.jobs.length <= lane.jobs.length + 1) return 'refused';
      longest.jobs.pop();
      this.waiting -= 1;
      this.settle(longest);
    }
    this.lanes.set(key, lane);
    lane.jobs.push(job);
    this.waiting += 1;
    this.settle(lane);
    return isFull ? 'displaced' : 'added';
  }

  /** The next job, with the function that says that its work is done. Null when none may go to work now. */
  take(): { readonly job: Job; readonly done: () => void } | null {
    const [lane] = this.ready;
    const job = lane?.jobs.shift();
    if (!lane || job === undefined) return null;
    this.waiting -= 1;
    lane.active += 1;
    // To the end of the line.
    this.ready.delete(lane);
    this.settle(lane);
    return {
      job,
      done: () => {
        lane.active -= 1;
        this.settle(lane);
      },
    };
  }

  /** Takes out what waits: all of it, or one key's. */
  drain(key?: string): Job[] {
    const lanes =
      key === undefined ? [...this.lanes.values()] : [this.lanes.get(key)].filter((lane) => lane !== undefined);
    return lanes.flatMap((lane) => {
      const jobs = lane.jobs.splice(0);
      this.waiting -= jobs.length;
      this.settle(lane);
      return jobs;
    });
  }

  private settle(lane: Lane<Job>): void {
    if (lane.jobs.length > 0 && lane.active < this.limits.activePerKey) this.ready.add(lane);
    else this.ready.delete(lane);
    if (lane.jobs.length === 0 && lane.active === 0) this.lanes.delete(lane.key);
  }

  private longest(): Lane<Job> | undefined {
    let longest: Lane<Job> | undefined;
    for (const lane of this.lanes.values()) {
      if (!longest || lane.jobs.length > longest.jobs.length) longest = lane;
    }
    return longest;
  }
}
