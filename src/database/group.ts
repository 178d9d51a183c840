import { isDatabaseAway, isDeadlock } from './database-errors.js';

export interface GroupOptions<Item> {
  /** Items of one statement. */
  readonly most: number;
  /** Statements at once. */
  readonly atOnce: number;
  /** Two items with one key never share a statement. Absent: any may. */
  readonly keyOf?: (item: Item) => string;
}

/** So long is waited for company in a busy time. */
const collectMs = 2;

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: what is asked for while earlier statements are on their way goes together in the next one, so that nobody waits
 * for company, and a busy time costs a statement per many. No item shares another's fate: where a group fails for what is in it,
 * each of its items is tried alone.
 */
export class Group<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private running = 0;
  private scheduled = false;
  /** The last statement had company. */
  private isBusy = false;

  /** `work` answers one result an item, in their order. */
  constructor(
    private readonly work: (items: readonly Item[]) => Promise<readonly Result[]>,
    private readonly options: GroupOptions<Item>,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.schedule();
    });
  }

  /** After this turn of the event loop, so that what it brings goes together; in a busy time, a little later. */
  private schedule(): void {
    if (this.scheduled || this.running >= this.options.atOnce) return;
    this.scheduled = true;
    const go = (): void => {
      this.scheduled = false;
      this.pump();
    };
    if (this.isBusy) setTimeout(go, collectMs);
    else setImmediate(go);
  }

  private pump(): void {
    while (this.running < this.options.atOnce && this.waiting.length > 0) {
      this.running += 1;
      const group = this.take();
      this.isBusy = group.length > 1;
      void this.run(group).finally(() => {
        this.running -= 1;
        this.schedule();
      });
    }
  }

  private take(): Waiting<Item, Result>[] {
    const { most, keyOf } = this.options;
    if (!keyOf) return this.waiting.splice(0, most);
    const keys = new Set<string>();
    const taken: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    for (const one of this.waiting) {
      const key = keyOf(one.item);
      if (taken.length >= most || keys.has(key)) left.push(one);
      else {
        keys.add(key);
        taken.push(one);
      }
    }
    this.waiting = left;
    return taken;
  }

  private async run(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.work(group.map(({ item }) => item));
      group.forEach(({ resolve }, index) => resolve(results[index] as Result));
    } catch (error) {
      if (group.length > 1 && (isDeadlock(error) || !isDatabaseAway(error))) {
        for (const one of group) await this.run([one]);
        return;
      }
      for (const { reject } of group) reject(error);
    }
  }
}
