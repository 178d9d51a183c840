import type { Core } from '../core.js';
import { defaultTenantId, idPrefixes } from '../domain/ids.js';
import { newId } from '../security/new-id.js';
import { generateSecret } from '../security/signing-secret.js';

/** Marks the endpoint that the embedded default made for its sample receiver. */
const description = 'Sample receiver of the embedded default';

/** The sample receiver's endpoint, made at the first start; returns its secret, so that the receiver can verify what comes. */
export async function ensureSampleEndpoint({ endpoints, secrets }: Core, port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}/hook`;
  const found = await endpoints.findSample(defaultTenantId, url, description);
  if (found) return secrets.open(found.sealed, found.id);
  const secret = generateSecret();
  const id = newId(idPrefixes.endpoint);
  await endpoints.create({
    id,
    tenantId: defaultTenantId,
    url,
    events: ['sample.*'],
    description,
    profile: 'default',
    sealedSecret: secrets.seal(secret, id),
  });
  return secret;
}
