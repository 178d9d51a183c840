import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Engines } from '../engines/engines.js';
import { batchLoad, singleLoad } from '../loads.js';
import type { Options } from '../options.js';
import { Receiver } from '../receiver/receiver.js';
import { LoadOverHttp } from '../subjects/over-http.js';
import { NoSuchLaneError, startPosthorn } from '../subjects/posthorn.js';
import { summarise } from './summary.js';

/** API and worker under --cpu-prof, saturated; what it does outside of that spell is not in the summary. */
export async function profile(
  options: Options,
  directory: string,
  engines: Engines,
  say: (text: string) => void,
): Promise<void> {
  const profileDir = resolve(directory);
  mkdirSync(profileDir, { recursive: true });
  const receiver = await Receiver.start();
  const http = await LoadOverHttp.start(receiver);
  try {
    for (const lane of ['default', 'express'] as const) {
      if (!options.subjects.includes(lane)) continue;
      const started = await startPosthorn({
        lane,
        engines,
        receiver,
        http,
        endpoints: options.endpoints,
        profileDir,
      }).catch((error: unknown) => {
        if (error instanceof NoSuchLaneError) return null;
        throw error;
      });
      if (!started) {
        say(`left out: this build has no ${lane} lane`);
        continue;
      }
      const load =
        lane === 'express' && !options.measures.includes('single') ? batchLoad(options) : singleLoad(lane, options);
      say(`warming up, ${lane} lane`);
      await started.saturate({ ...load, ms: options.warmUpSeconds * 1_000 });
      say(`profiling, ${lane} lane`);
      const { windowFromUs, windowToUs } = await started.saturate(load);
      const delivered = (await started.take()).arrivals.atUs.filter(
        (atUs) => atUs >= windowFromUs && atUs < windowToUs,
      ).length;
      await started.stop();
      const window = { fromUs: windowFromUs, toUs: windowToUs, delivered };
      const path = join(profileDir, `${lane}.cpuprofile`);
      writeFileSync(`${path}.window.json`, `${JSON.stringify(window)}\n`);
      process.stdout.write(`\n## ${started.title}: where its CPU time went (${path})\n\n${summarise(path, window)}`);
    }
  } finally {
    await http.stop();
    await receiver.stop();
  }
}
