import type { Core } from './core.js';
import { idPrefixes } from './domain/ids.js';
import { generateApiKey, hashApiKey } from './security/api-key.js';
import { newId } from './security/new-id.js';

/**
 * Makes sure that there is a service key: the configured one, or, where there is none at all, a generated one.
 * Returns the key's value when it was generated now: it is shown once, only its hash is kept.
 */
export async function ensureServiceKey({ apiKeys }: Core, configured: string | null): Promise<string | null> {
  if (configured === null && (await apiKeys.any())) return null;
  const key = configured ?? generateApiKey();
  await apiKeys.add({ id: newId(idPrefixes.apiKey), tenantId: null, name: 'service key', hash: hashApiKey(key) });
  return configured === null ? key : null;
}
