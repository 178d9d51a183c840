import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** What docker-compose.yml says, as far as it can be run without containers. */
export function readCompose(root) {
  const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true });
  const { environment } = services.temporal;
  return {
    /** `-c name=value` of Postgres's command line. */
    postgresSettings: Object.fromEntries(
      services.postgres.command.filter((word) => word.includes('=')).map((word) => word.split('=')),
    ),
    /** The server is configured by nothing else. */
    temporalEnvironment: environment,
    temporalHealthPath: new URL(services.temporal.healthcheck.test.at(-1)).pathname,
    dynamicConfig: join(root, 'deploy', 'temporal', environment.DYNAMIC_CONFIG_FILE_PATH.split('/').at(-1)),
    namespace: services['temporal-namespace'].environment.TEMPORAL_NAMESPACE,
    retention: services['temporal-namespace'].environment.TEMPORAL_NAMESPACE_RETENTION,
  };
}
