import type { BareKind, BareSettings } from '../baselines/bare-process.js';
import { Child } from '../child.js';
import type { Arrivals } from '../load/load.js';
import type { Receiver } from '../receiver/receiver.js';
import { type Subject, titles } from './subject.js';

const kinds = { a: 'ordinary', b: 'eager', 'b-prime': 'eager-sql' } as const satisfies Record<string, BareKind>;

/** The engine alone. Its process starts the workflows itself, over the worker's connection. */
export async function startBare(
  name: keyof typeof kinds,
  settings: Omit<BareSettings, 'kind'>,
  receiver: Receiver,
): Promise<Subject> {
  const child = await Child.start('./baselines/bare-process.js', [JSON.stringify({ ...settings, kind: kinds[name] })]);
  return {
    name,
    title: titles[name],
    pids: [child.pid],
    database: settings.databaseUrl ? new URL(settings.databaseUrl).pathname.slice(1) : null,
    namespace: settings.namespace,
    saturate: (load) => child.ask({ kind: 'saturate', load }),
    steady: (load) => child.ask({ kind: 'steady', load }),
    async take() {
      const own = await child.ask<{ arrivals: Arrivals; ids: readonly string[] }>({ kind: 'take' });
      const arrivals = name === 'b-prime' ? await receiver.take() : own.arrivals;
      return { arrivals, workflowIds: own.ids };
    },
    stop: () => child.stop(),
  };
}
