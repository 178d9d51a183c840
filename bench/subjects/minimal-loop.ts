import { Child } from '../child.js';
import type { Receiver } from '../receiver/receiver.js';
import type { LoadOverHttp } from './over-http.js';
import { type Subject, titles } from './subject.js';

export async function startMinimalLoop(databaseUrl: string, receiver: Receiver, http: LoadOverHttp): Promise<Subject> {
  const child = await Child.start('./baselines/minimal-loop-process.js', [databaseUrl, receiver.url]);
  const target = { apiUrl: child.ready as string, apiKey: 'none', types: ['bench.e0'] };
  return {
    name: 'c',
    title: titles.c,
    pids: [child.pid],
    database: new URL(databaseUrl).pathname.slice(1),
    namespace: null,
    saturate: (load) => http.saturate(target, load),
    steady: (load) => http.steady(target, load),
    take: async () => ({ arrivals: await receiver.take(), workflowIds: [] }),
    stop: () => child.stop(),
  };
}
