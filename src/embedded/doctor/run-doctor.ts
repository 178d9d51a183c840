import { checkDatabase } from '../../database/doctor-checks.js';
import { checkTemporal } from '../../temporal/doctor-checks.js';
import { cacheDirectory } from '../cache-dir.js';
import { findStaleChildren } from '../child-process.js';
import { findDataDirHolder } from '../data-dir-lock.js';
import { embeddedPortWishes } from '../port-wishes.js';
import { findPortProblems } from '../ports.js';
import { checkTemporalCli } from './cli-checks.js';
import { checkConfig, checkEncryptionKeys } from './config-checks.js';
import { checkDataDir, checkEmbeddedPostgres } from './data-dir-checks.js';
import { type Finding, warn } from './finding.js';
import { checkNode, checkPython } from './machine-checks.js';
import { checkPortsAreFree } from './port-checks.js';

/**
 * Makes every check that fits this configuration and tells each finding as it comes.
 * It changes nothing but missing library links, and fetches nothing.
 * @returns how many failed.
 */
export async function runDoctor(env: NodeJS.ProcessEnv, tell: (finding: Finding) => void): Promise<number> {
  let failures = 0;
  const report = (...findings: readonly Finding[]): void => {
    for (const finding of findings) {
      if (finding.status === 'FAIL') failures += 1;
      tell(finding);
    }
  };

  report(checkNode());
  const { config, findings } = checkConfig(env);
  const { dataDir, database, temporal } = config;
  report(...findings, checkEncryptionKeys(config), checkDataDir(dataDir));

  const holder = findDataDirHolder(dataDir);
  report(...(await checkPortsAreFree(embeddedPortWishes(config), holder, findStaleChildren(dataDir))));

  report(database.url === null ? await checkEmbeddedPostgres(dataDir) : await checkDatabase(database.url));

  const { namespace } = temporal;
  if (temporal.address !== null) {
    report(...(await checkTemporal({ address: temporal.address, namespace })));
    return failures;
  }
  const cacheDir = cacheDirectory(env, dataDir);
  const cli = await checkTemporalCli({ cliPath: temporal.cliPath, cacheDir, env });
  report(cli.finding, await checkPython(cli.found, env));
  // The embedded one can be asked only while it runs, and only where this shell's settings are those that it was started with.
  if (holder !== null) {
    const free =
      (
        await findPortProblems([
          { port: temporal.embeddedPort, wantedBy: 'Temporal', variable: 'POSTHORN_TEMPORAL_PORT' },
        ])
      ).length === 0;
    if (free) {
      const what = `The Posthorn that runs here (process ${holder}) uses other ports than this shell's settings`;
      report(warn(what, 'Set the same POSTHORN_… variables as where you started it.'));
    } else report(...(await checkTemporal({ address: `127.0.0.1:${temporal.embeddedPort}`, namespace })));
  }
  return failures;
}
