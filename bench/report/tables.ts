import { type Figures, type Part, parts } from '../measure/round.js';
import { type SubjectName, titles } from '../subjects/subject.js';
import type { Spread } from '../measure/statistics.js';
import type { Results, ResultName } from './results.js';
import type { Target } from './targets.js';

interface Column {
  readonly title: string;
  readonly digits: number;
  readonly pick: (figures: Figures) => number | null;
}

const rates: readonly Column[] = [
  { title: 'accepted/s', digits: 1, pick: (f) => f.acceptedPerSecond },
  { title: 'delivered/s', digits: 1, pick: (f) => f.deliveredPerSecond },
  { title: 'p50 ms', digits: 1, pick: (f) => f.p50Ms },
  { title: 'p95 ms', digits: 1, pick: (f) => f.p95Ms },
  { title: 'p99 ms', digits: 1, pick: (f) => f.p99Ms },
];
const cpu: readonly Column[] = parts.map((part) => ({
  title: part,
  digits: 2,
  pick: (f) => f.cpuMsPerDelivery[part],
}));
const memory: readonly Column[] = parts.map((part: Part) => ({
  title: part,
  digits: 0,
  pick: (f) => f.memoryMb[part],
}));
const counters: readonly Column[] = [
  { title: 'statements', digits: 2, pick: (f) => f.statementsPerDelivery },
  { title: 'transactions', digits: 2, pick: (f) => f.transactionsPerDelivery },
  { title: 'WAL bytes', digits: 0, pick: (f) => f.walBytesPerDelivery },
  { title: 'WAL, server', digits: 0, pick: (f) => f.serverWalBytesPerDelivery },
  { title: 'transitions', digits: 1, pick: (f) => f.workflow?.stateTransitions ?? null },
  { title: 'history', digits: 1, pick: (f) => f.workflow?.historyEvents ?? null },
];

const what: Record<ResultName, string> = {
  single: 'Saturated by single publishes',
  batch: 'Saturated by batches of 100',
  steady: 'At a steady rate',
  'ingest-no-endpoint': 'Ingest alone, batches of 100: an event type without endpoint',
  'ingest-paused': 'Ingest alone, batches of 100: one paused endpoint, a held delivery per event',
};

const othersWorthTelling = 0.2;

/** Everything that was measured, as text. */
export function printTables(results: Results, subjects: readonly SubjectName[]): string {
  const lines: string[] = [];
  for (const measure of Object.keys(what) as ResultName[]) {
    const measured = subjects.filter((name) => results.of(measure, name).length > 0);
    if (measured.length === 0) continue;
    const ingest = measure.startsWith('ingest');
    const each = ingest ? 'an event' : 'a delivery';
    lines.push('', `## ${what[measure]}: median (least – most)`, '');
    lines.push(...table(results, measure, measured, ingest ? rates.slice(0, 1) : rates));
    lines.push('', `CPU ms ${each}, by process`, '', ...table(results, measure, measured, cpu));
    lines.push('', `Memory in MB at the end of a spell`, '', ...table(results, measure, measured, memory));
    lines.push('', `Postgres and Temporal, for ${each}`, '');
    lines.push(...table(results, measure, measured, ingest ? counters.slice(0, 4) : counters));
    for (const name of measured) lines.push(...complaints(results, measure, name, ingest));
  }
  return `${lines.join('\n')}\n`;
}

function table(
  results: Results,
  measure: ResultName,
  subjects: readonly SubjectName[],
  columns: readonly Column[],
): string[] {
  const cells = subjects.map((name) => [
    measure === 'steady' ? `${titles[name]}, ${results.rates.get(name) ?? '?'}/s` : titles[name],
    ...columns.map(({ pick, digits }) => {
      const spread = results.spread(measure, name, pick);
      return spread ? shown(spread, digits) : '–';
    }),
  ]);
  return aligned([['', ...columns.map(({ title }) => title)], ...cells]);
}

function shown({ median, least, most }: Spread, digits: number): string {
  if (Number.isNaN(median)) return '–';
  const text = (value: number): string => value.toFixed(digits);
  return least === most ? text(median) : `${text(median)} (${text(least)} – ${text(most)})`;
}

/** Markdown, so that it may be pasted. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(' | ')} |`;
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(rows[0]!), rule, ...rows.slice(1).map(line)];
}

/** What makes a figure worth less. */
function complaints(results: Results, measure: ResultName, name: SubjectName, ingest: boolean): string[] {
  return results.of(measure, name).flatMap((figures, round) => {
    const found = [
      figures.othersCpus > othersWorthTelling ? `other programs took ${figures.othersCpus.toFixed(1)} CPUs` : null,
      figures.refused > 0 ? `${figures.refused} publishes refused` : null,
      figures.repeated > 0 ? `${figures.repeated} received twice` : null,
      !ingest && figures.delivered < figures.events
        ? `${figures.events - figures.delivered} of ${figures.events} not received within a minute`
        : null,
    ].filter((text) => text !== null);
    return found.length > 0 ? [`! ${titles[name]}, round ${round + 1}: ${found.join(', ')}`] : [];
  });
}

export function printTargets(targets: readonly Target[]): string {
  if (targets.length === 0) return '';
  const rows = targets.map(({ what, measured, bound, direction, met }) => {
    return [
      what,
      shown(measured, bound >= 100 ? 0 : 2),
      `${direction === 'at least' ? '≥' : '≤'} ${bound}`,
      met ? 'pass' : 'MISS',
    ];
  });
  return `\n## Targets: median (least – most)\n\n${aligned([['what', 'measured', 'target', ''], ...rows]).join('\n')}\n`;
}
