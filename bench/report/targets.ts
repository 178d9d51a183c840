import type { Figures } from '../measure/round.js';
import type { Spread } from '../measure/statistics.js';
import type { Results } from './results.js';

export interface Target {
  readonly what: string;
  readonly measured: Spread;
  readonly bound: number;
  readonly direction: 'at least' | 'at most';
  readonly met: boolean;
}

const delivered = (figures: Figures): number => figures.deliveredPerSecond;
const p50 = (figures: Figures): number => figures.p50Ms;
/** Of what we run: without the receiver and the load generator, which stand for other people's machines. */
export const ourCpuMs = ({ cpuMsPerDelivery: cpu }: Figures): number => cpu.subject + cpu.postgres;

/** The targets that what was measured can say something about. */
export function judge(results: Results): Target[] {
  const targets: Target[] = [];
  const add = (what: string, measured: Spread | null, direction: Target['direction'], bound: number): void => {
    if (!measured) return;
    const met = direction === 'at least' ? measured.median >= bound : measured.median <= bound;
    targets.push({ what, measured, bound, direction, met });
  };
  const { ratio, spread } = {
    ratio: results.ratio.bind(results),
    spread: results.spread.bind(results),
  };
  const rate = (name: 'default' | 'express'): string => `${results.rates.get(name) ?? '?'}/s`;
  add('default lane, delivered/s ÷ (b)', ratio('single', 'default', 'b', delivered), 'at least', 0.85);
  add("default lane, delivered/s ÷ (b')", ratio('single', 'default', 'b-prime', delivered), 'at least', 0.95);
  add('default lane, delivered/s ÷ (a)', ratio('single', 'default', 'a', delivered), 'at least', 1.4);
  add(`default lane, p50 at ${rate('default')} ÷ (b)`, ratio('steady', 'default', 'b', p50), 'at most', 1.5);
  add('express, single publishes, delivered/s ÷ (c)', ratio('single', 'express', 'c', delivered), 'at least', 0.6);
  add('express, batches, delivered/s ÷ (c)', ratio('batch', 'express', 'c', delivered), 'at least', 0.6);
  add('express, CPU ms a delivery (API, worker, Postgres)', spread('single', 'express', ourCpuMs), 'at most', 0.8);
  add('express, batches, CPU ms a delivery', spread('batch', 'express', ourCpuMs), 'at most', 0.8);
  add(`express, p50 at ${rate('express')} ÷ (c)`, ratio('steady', 'express', 'c', p50), 'at most', 2);
  for (const [measure, what] of [
    ['ingest-no-endpoint', 'type without endpoint'],
    ['ingest-paused', 'paused endpoint'],
  ] as const) {
    for (const lane of ['default', 'express'] as const) {
      const accepted = spread(measure, lane, (figures) => figures.acceptedPerSecond);
      add(`ingest alone, ${what}, ${lane}, events/s`, accepted, 'at least', 5_000);
    }
  }
  return targets;
}
