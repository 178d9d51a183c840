import { loadConfig } from '../config/config.js';
import { Core } from '../core.js';
import { createHttpApp } from './http-app.js';
import { createOpenApi } from './openapi.js';

const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** The text of docs/reference/openapi.json, from the code alone: nothing is connected. */
export async function generateOpenApi(): Promise<string> {
  const config = loadConfig('api', {
    POSTHORN_DATABASE_URL: 'postgres://nowhere.invalid/posthorn',
    TEMPORAL_ADDRESS: 'nowhere.invalid:7233',
    POSTHORN_ENCRYPTION_KEYS: `none:${Buffer.alloc(32).toString('base64')}`,
  });
  const app = await createHttpApp(
    new Core({
      config,
      databaseUrl: config.database.url!,
      temporalAddress: config.temporal.address!,
      keyRing: config.encryptionKeys!,
      connection: 'plain',
      log: silent,
    }),
  );
  try {
    return `${JSON.stringify(createOpenApi(app), null, 2)}\n`;
  } finally {
    await app.close();
  }
}

function ignore(): void {
  // Whoever generates a document reads no log.
}
