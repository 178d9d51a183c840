const windowMs = 2;
const mostRows = 200;

/** Rows that come within 2 ms, 200 at most, are written by one statement; each caller goes on after the commit. */
export class GroupCommit<Row> {
  private rows: Row[] = [];
  private waiting: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly write: (rows: readonly Row[]) => Promise<void>) {}

  add(row: Row): Promise<void> {
    return new Promise((resolve, reject) => {
      this.rows.push(row);
      this.waiting.push({ resolve, reject });
      if (this.rows.length >= mostRows) this.flush();
      else this.timer ??= setTimeout(() => this.flush(), windowMs);
    });
  }

  private flush(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const [rows, waiting] = [this.rows, this.waiting];
    [this.rows, this.waiting] = [[], []];
    void this.settle(rows, waiting);
  }

  private async settle(rows: readonly Row[], waiting: typeof this.waiting): Promise<void> {
    try {
      await this.write(rows);
      for (const { resolve } of waiting) resolve();
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
