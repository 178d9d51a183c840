import { describe, expect, it } from 'vitest';
import { captureStatements } from '../../bench/baselines/captured-statements.js';
import { GroupCommit } from '../../bench/baselines/group-commit.js';
import { eventText, readStamp } from '../../bench/load/load.js';
import { Progress, saturate } from '../../bench/load/pacer.js';
import { cpuMsOf, memoryBytesOf } from '../../bench/measure/processes.js';
import type { Figures } from '../../bench/measure/round.js';
import { percentile, spreadOf } from '../../bench/measure/statistics.js';
import { Results } from '../../bench/report/results.js';
import { judge } from '../../bench/report/targets.js';

const figures = (deliveredPerSecond: number): Figures => ({ deliveredPerSecond }) as Figures;

describe('the bench', () => {
  it('takes percentiles by nearest rank, and a median between two values', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([0.5, 0.95, 0.99].map((share) => percentile(hundred, share))).toEqual([50, 95, 99]);
    expect(spreadOf([3, 1, 2])).toEqual({ median: 2, least: 1, most: 3 });
    expect(spreadOf([4, 1]).median).toBe(2.5);
  });

  it('takes ratios within a round, and meets no target where there is no ratio', () => {
    const results = new Results();
    for (const [ours, theirs] of [
      [90, 100],
      [40, 50],
      [170, 200],
    ] as const) {
      results.add('single', 'default', figures(ours));
      results.add('single', 'b', figures(theirs));
    }
    const [target] = judge(results);
    expect(target).toMatchObject({ measured: { median: 0.85, least: 0.8, most: 0.9 }, met: true });
    results.add('single', 'default', figures(5));
    results.add('single', 'b', figures(0));
    expect(judge(results)[0]!.met).toBe(false);
  });

  it('finds in a delivery when its event was published', () => {
    const text = eventText('bench.e0', 123_456.7, 42);
    expect(JSON.parse(text)).toMatchObject({ type: 'bench.e0', data: { sent_us: 123_456.7, n: 42 } });
    expect(Buffer.byteLength(text)).toBeGreaterThan(980);
    expect(readStamp(`{"delivery_id":"whd_1","type":"bench.e0",${text.slice(text.indexOf('"data"'))}`)).toEqual({
      sentUs: 123_456.7,
      number: 42,
    });
  });

  it('keeps the pipeline full, and no more than full', async () => {
    const progress = new Progress();
    let [sent, arrived, most] = [0, 0, 0];
    const load = { ms: 120, rampMs: 20, width: 8, batch: 2, outstanding: 10 };
    const published = await saturate(
      load,
      async (_, count) => {
        sent += count;
        most = Math.max(most, sent - arrived);
        setTimeout(() => progress.reached((arrived += count)), 5);
        return count;
      },
      progress,
    );
    expect(published.accepted).toBe(sent);
    expect(sent).toBeGreaterThan(20);
    expect(most).toBe(10);
  });

  it('writes what comes within 2 ms by one statement, 200 rows at most, and fails together', async () => {
    const written: number[][] = [];
    const group = new GroupCommit<number>(async (rows) => {
      written.push([...rows]);
      if (rows.includes(-1)) throw new Error('no');
    });
    await Promise.all(Array.from({ length: 450 }, (_, index) => group.add(index)));
    expect(written.map((rows) => rows.length)).toEqual([200, 200, 50]);
    await expect(Promise.all([group.add(1), group.add(-1)])).rejects.toThrow('no');
  });

  it('sends Posthorn’s own statements with its own values in the comparison with their cost', async () => {
    const statements = await captureStatements();
    const hash = Buffer.from('hash');
    const { deliveryId, queries } = statements.publish('{"n":1}', hash);
    const text = queries.map((query) => query.text).join('\n');
    expect(text).toContain('insert into deliveries');
    const values = queries.flatMap((query) => query.values.flat());
    expect(values).toEqual(expect.arrayContaining([deliveryId, '{"n":1}', hash]));
    expect(values.filter((value) => typeof value === 'string' && value.startsWith('@'))).toEqual([]);

    expect(statements.load(deliveryId, 'run-1')).toMatchObject({ values: [[deliveryId], ['run-1'], [1], null] });
    const startedAt = new Date();
    const record = statements.record(deliveryId, 'run-1', startedAt, 12.4, 200);
    expect(record.text).toContain('insert into attempts');
    expect(record.values.flat()).toEqual(expect.arrayContaining([deliveryId, 'run-1', startedAt, 12, 200]));
    expect(record.values.flat().filter((value) => typeof value === 'string' && value.startsWith('@'))).toEqual([]);
  });

  it.runIf(process.platform === 'linux')('reads CPU time and memory of a process and its children', () => {
    const before = cpuMsOf([process.pid]);
    const used = process.cpuUsage();
    while (process.cpuUsage(used).user < 60_000);
    expect(cpuMsOf([process.pid]) - before).toBeGreaterThanOrEqual(30);
    expect(memoryBytesOf([process.pid])).toBeGreaterThan(20 * 2 ** 20);
  });
});
