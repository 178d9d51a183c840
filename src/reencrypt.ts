import { ConfigError, loadConfig } from './config/config.js';
import { createDataSource } from './database/data-source.js';
import { SealedTextStore } from './database/sealed-text-store.js';
import { runEntry } from './process.js';
import { reencrypt } from './security/reencryption.js';
import { SecretBox } from './security/secret-box.js';

const usage = `Usage: npm run secrets:reencrypt
Encrypts whatever another key encrypted with the first key of POSTHORN_ENCRYPTION_KEYS. Needs POSTHORN_DATABASE_URL.
Restart every process with the new ring before; take the old keys out of it afterwards.`;

class ReencryptionError extends Error {
  override readonly name = 'ReencryptionError';
  constructor(failed: readonly string[]) {
    super(`${failed.length} could not be decrypted, and stay as they are:\n${failed.join('\n')}`);
  }
}

await runEntry(usage, async () => {
  // Only these two are needed, whatever the process is otherwise.
  const { database, encryptionKeys } = loadConfig('standalone');
  if (database.url === null || encryptionKeys === null) {
    throw new ConfigError([
      ...(database.url === null
        ? ['POSTHORN_DATABASE_URL is not set: postgres://user:password@host:5432/posthorn']
        : []),
      ...(encryptionKeys === null ? ['POSTHORN_ENCRYPTION_KEYS is not set: new:key,old:key, the new one first'] : []),
    ]);
  }
  const db = await createDataSource({ url: database.url, poolSize: 2 }).initialize();
  try {
    const [first] = encryptionKeys;
    const results = await reencrypt(new SealedTextStore(db), new SecretBox(encryptionKeys), first.id);
    const failed = results.flatMap(({ name, failed }) => failed.map(({ key, why }) => `  ${name}, ${key}: ${why}`));
    for (const { name, done } of results) process.stdout.write(`${name}: ${done} encrypted with '${first.id}'\n`);
    if (failed.length > 0) throw new ReencryptionError(failed);
  } finally {
    await db.destroy();
  }
});
