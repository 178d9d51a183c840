import { type Config, ConfigError, loadConfig } from '../../config/config.js';
import { type Finding, fail, ok, warn } from './finding.js';

/** Bad settings are told one by one and left out, so that the other checks can still be made. */
export function checkConfig(env: NodeJS.ProcessEnv): {
  readonly config: Config;
  readonly findings: readonly Finding[];
} {
  try {
    return { config: loadConfig('standalone', env), findings: [ok('Every setting is known and valid')] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const findings = error.problems.map((problem) => fail(problem, 'Correct it, or unset it for the default.'));
    const bad = new Set(error.problems.map((problem) => /^\w+/.exec(problem)?.[0]));
    const rest = Object.fromEntries(Object.entries(env).filter(([key]) => !bad.has(key)));
    return { config: loadConfig('standalone', rest), findings };
  }
}

export function checkEncryptionKeys({ encryptionKeys, database }: Config): Finding {
  if (encryptionKeys !== null) {
    const [first] = encryptionKeys;
    const count = encryptionKeys.length === 1 ? '1 key' : `${encryptionKeys.length} keys`;
    return ok(`Encryption: ${count}; '${first.id}' encrypts what is new`);
  }
  if (database.url === null) return ok('Encryption: no key is set, npm start keeps one in the data directory');
  return warn(
    'POSTHORN_ENCRYPTION_KEYS is not set, but POSTHORN_DATABASE_URL is',
    'API and worker need the same keys; make one with: POSTHORN_ENCRYPTION_KEYS=k1:$(openssl rand -base64 32)',
  );
}
