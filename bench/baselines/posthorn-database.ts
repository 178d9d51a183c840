import { createDataSource, migrate } from '../../src/database/data-source.js';
import { EndpointStore } from '../../src/database/endpoint-store.js';
import { defaultTenantId, idPrefixes } from '../../src/domain/ids.js';
import { newId } from '../../src/security/new-id.js';

/** Posthorn's tables with one active endpoint; nothing of Posthorn runs on them. */
export async function preparePosthornDatabase(databaseUrl: string, receiverUrl: string): Promise<void> {
  const db = createDataSource({ url: databaseUrl, poolSize: 2 });
  await db.initialize();
  try {
    await migrate(db);
    await new EndpointStore(db).create({
      id: newId(idPrefixes.endpoint),
      tenantId: defaultTenantId,
      url: receiverUrl,
      events: ['bench.e0'],
      profile: 'default',
      sealedSecret: 'nobody opens it',
    });
  } finally {
    await db.destroy();
  }
}
