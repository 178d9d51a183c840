import { defineConfig } from 'vitest/config';

/** Run by scripts/production-server.mjs, which starts Postgres and the Temporal server. */
const serial = { fileParallelism: false, testTimeout: 420_000, hookTimeout: 180_000 } as const;

export default defineConfig({
  test: {
    pool: 'forks',
    projects: [
      {
        extends: true,
        test: {
          ...serial,
          name: 'production',
          include: ['test/production/**/*.test.ts'],
          globalSetup: 'test/support/setup-production-server.ts',
        },
      },
      {
        extends: true,
        test: {
          ...serial,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: 'test/support/setup-production-server.ts',
        },
      },
    ],
  },
});
