import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Engines } from '../engines/engines.js';
import { batchLoad, singleLoad } from '../loads.js';
import type { Options } from '../options.js';
import { Receiver } from '../receiver/receiver.js';
import { LoadOverHttp } from '../subjects/over-http.js';
import { NoSuchLaneError, startPosthorn } from '../subjects/posthorn.js';
import { readProfile } from './cpu-profile.js';
import { flameGraph } from './flame-graph.js';
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
      const threadsDir = join(profileDir, `${lane}-threads`);
      rmSync(threadsDir, { recursive: true, force: true });
      const started = await startPosthorn({
        lane,
        engines,
        receiver,
        http,
        endpoints: options.endpoints,
        profileDir: threadsDir,
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
      for (const [thread, file] of threadsOf(threadsDir)) {
        const path = join(profileDir, `${lane}-${thread}.cpuprofile`);
        renameSync(file, path);
        writeFileSync(`${path}.window.json`, `${JSON.stringify(window)}\n`);
        const title = `${started.title}: ${thread} thread`;
        const drawn = path.replace('.cpuprofile', '.svg');
        writeFileSync(drawn, flameGraph(readProfile(path), window, title));
        process.stdout.write(`\n## ${title} (${path}, ${drawn})\n\n${summarise(path, window)}`);
      }
      rmSync(threadsDir, { recursive: true });
    }
  } finally {
    await http.stop();
    await receiver.stop();
  }
}

/** Node names a profile by the process and the thread; thread 0 is the main one, the other runs the workflows. */
function threadsOf(directory: string): [string, string][] {
  return readdirSync(directory).map((name) => {
    const thread = Number(name.split('.').at(-3));
    return [thread === 0 ? 'main' : `worker-${thread}`, join(directory, name)];
  });
}
