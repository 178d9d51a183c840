import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { startEngines } from './engines/start.js';
import { readOptions, UsageError } from './options.js';
import { profile } from './profile/profile.js';
import { printTables, printTargets } from './report/tables.js';
import { judge } from './report/targets.js';
import { measureAll } from './rounds.js';
import { Stage } from './stage.js';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** `npm run bench`. */
try {
  const options = readOptions(process.argv.slice(2));
  if (options) process.exitCode = await run(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\nnpm run bench -- --help says what there is.\n`);
  process.exitCode = 2;
}

async function run(options: NonNullable<ReturnType<typeof readOptions>>): Promise<number> {
  const startedAt = new Date();
  const engines = await startEngines(options.engines);
  say(`on ${engines.name}`);
  try {
    if (options.profile !== null) {
      await profile(options, options.profile, engines, say);
      return 0;
    }
    const stage = await Stage.set(options, engines, say);
    try {
      const results = await measureAll(stage, options, say);
      const targets = judge(results);
      process.stdout.write(
        `# ${startedAt.toISOString()}, ${engines.name}, ${cpus().length} CPUs, Node ${process.versions.node}, ${options.rounds} rounds\n`,
      );
      process.stdout.write(printTables(results, stage.names) + printTargets(targets));
      if (options.json !== null) {
        const rates = Object.fromEntries(results.rates);
        const whole = { startedAt, engines: engines.name, options, rates, targets, rounds: results.toJson() };
        writeFileSync(options.json, `${JSON.stringify(whole, null, 2)}\n`);
      }
      return targets.every(({ met }) => met) ? 0 : 1;
    } finally {
      await stage.strike();
    }
  } finally {
    await engines.stop();
  }
}
