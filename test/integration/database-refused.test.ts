import { describe, expect, inject, it } from 'vitest';
import '../support/provided.js';
import { loadConfig } from '../../src/config/config.js';
import { Core } from '../../src/core.js';
import { createLogger } from '../../src/telemetry/logger.js';
import { testEnv } from '../support/posthorn.js';

describe('a process whose database does not let it in', () => {
  it.each([
    ['has another password', (url: URL) => void (url.password = 'wrong'), '28P01'],
    ['has no such database', (url: URL) => void (url.pathname = '/no_such_database'), '3D000'],
  ])('says so instead of waiting for ever: it %s', async (_, spoil, code) => {
    const url = new URL(inject('postgresUrl'));
    spoil(url);
    const config = loadConfig(
      'api',
      testEnv({ databaseUrl: url.href, temporalAddress: '127.0.0.1:1', namespace: 'default' }),
    );
    const core = new Core({
      config,
      databaseUrl: url.href,
      temporalAddress: '127.0.0.1:1',
      keyRing: config.encryptionKeys!,
      connection: 'plain',
      log: createLogger('silent'),
    });
    await expect(core.start()).rejects.toMatchObject({ code });
  });
});
