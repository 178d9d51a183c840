import { defineConfig } from 'vitest/config';

/** Test tiers by what they need: nothing, the time-skipping server, Postgres, the whole. */
const serial = { fileParallelism: false, testTimeout: 60_000, hookTimeout: 120_000 } as const;

const engines = {
  globalSetup: ['test/support/setup-build.ts', 'test/support/setup-postgres.ts', 'test/support/setup-temporal.ts'],
  testTimeout: 120_000,
};

export default defineConfig({
  test: {
    pool: 'forks',
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          ...serial,
          name: 'workflows',
          include: ['test/workflows/**/*.test.ts', 'test/replay/**/*.test.ts'],
          globalSetup: 'test/support/setup-bundle.ts',
        },
      },
      {
        extends: true,
        test: {
          ...serial,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: 'test/support/setup-postgres.ts',
        },
      },
      { extends: true, test: { ...serial, ...engines, name: 'e2e', include: ['test/e2e/**/*.test.ts'] } },
      // Other people's verifiers, some of which pip and go fetch: outside of `npm test`.
      {
        extends: true,
        test: {
          ...serial,
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      // Every way to write an address inside, called for real.
      { extends: true, test: { name: 'dialling', include: ['test/dialling/**/*.test.ts'], testTimeout: 30_000 } },
      // More signals than a run may get: minutes, so outside of `npm test`.
      {
        extends: true,
        test: {
          ...serial,
          globalSetup: [
            'test/support/setup-bundle.ts',
            'test/support/setup-postgres.ts',
            'test/support/setup-temporal.ts',
          ],
          name: 'signals',
          include: ['test/signals/**/*.test.ts'],
          testTimeout: 600_000,
        },
      },
      // A million deliveries are made first: minutes, so outside of `npm test`.
      {
        extends: true,
        test: {
          ...serial,
          name: 'lists',
          include: ['test/lists/**/*.test.ts'],
          globalSetup: 'test/support/setup-postgres.ts',
          hookTimeout: 600_000,
        },
      },
      // A bulk replay of 20,000: many minutes, so outside of `npm test`.
      {
        extends: true,
        test: {
          ...serial,
          ...engines,
          name: 'replay-load',
          include: ['test/replay-load/**/*.test.ts'],
          testTimeout: 3_600_000,
        },
      },
      // A quarter of an hour of kills: outside of `npm test`. It brings its own engines, which it kills too.
      {
        extends: true,
        test: {
          ...serial,
          name: 'endurance',
          include: ['test/endurance/**/*.test.ts'],
          globalSetup: 'test/support/setup-build.ts',
          testTimeout: 24 * 3_600_000,
        },
      },
      // 20,000 deliveries are made to wait first: many minutes, so outside of `npm test`.
      {
        extends: true,
        test: {
          ...serial,
          ...engines,
          name: 'waiting',
          include: ['test/waiting/**/*.test.ts'],
          testTimeout: 4 * 3_600_000,
        },
      },
      // Kills and outages: minutes, so outside of `npm test`.
      {
        extends: true,
        test: { ...serial, ...engines, name: 'chaos', include: ['test/chaos/**/*.test.ts'], testTimeout: 240_000 },
      },
    ],
  },
});
