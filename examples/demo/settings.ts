import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DemoError } from './posthorn-client.js';

export interface DemoSettings {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** Where Posthorn is and the key to it, the same way that `npm start` on this machine has them. */
export function readSettings(env: NodeJS.ProcessEnv): DemoSettings {
  const port = env['POSTHORN_HTTP_PORT'] || '8400';
  const baseUrl = (env['POSTHORN_API_URL'] || `http://127.0.0.1:${port}`).replace(/\/+$/, '');
  if (!/^https?:\/\/[^/]/.test(baseUrl)) throw new DemoError(`'${baseUrl}' is not a URL such as http://127.0.0.1:8400`);
  return { baseUrl, apiKey: env['POSTHORN_API_KEY'] || env['POSTHORN_BOOTSTRAP_API_KEY'] || readKeyFile(env) };
}

function readKeyFile(env: NodeJS.ProcessEnv): string {
  const file = join(env['POSTHORN_DATA_DIR'] || '.posthorn', 'api-key');
  let key: string;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'it does not exist' : String(error);
    throw new DemoError(
      `No API key: POSTHORN_API_KEY is not set, and ${file} can't be read (${why}). Run npm start first, in this folder, or set POSTHORN_API_KEY`,
      { cause: error },
    );
  }
  if (key === '') throw new DemoError(`No API key: ${file} is empty. Set POSTHORN_API_KEY`);
  return key;
}
