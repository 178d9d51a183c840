import type { DataSource } from '../../src/database/data-source.js';

export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** A plan in short: what it reads, and how many pages of 8 KiB. */
export interface Reading {
  readonly indexes: readonly string[];
  readonly scanned: readonly string[];
  readonly pages: number;
}

/** The store's database, which notes how Postgres carries out each statement, and runs it. */
export function explaining(db: DataSource): { readonly db: DataSource; readonly readings: Reading[] } {
  const readings: Reading[] = [];
  const query = async (text: string, values?: unknown[]): Promise<unknown> => {
    const [row] = await db.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }[]>(
      `explain (analyze, buffers, timing off, format json) ${text}`,
      values,
    );
    readings.push(read(row!['QUERY PLAN'][0]!.Plan));
    return db.query(text, values);
  };
  return { db: Object.assign(Object.create(db) as DataSource, { query }), readings };
}

function read(plan: PlanNode): Reading {
  const nodes = flat(plan);
  return {
    indexes: [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].sort(),
    scanned: nodes.flatMap((node) => (node['Node Type'].includes('Seq Scan') ? [node['Relation Name']!] : [])),
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
  };
}

const flat = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flat)];
