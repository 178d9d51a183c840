import 'vitest';

/** What the global set-ups hand to the test files. */
declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the run's Postgres; createTestDatabase() makes a database per file on it. */
    postgresUrl: string;
    /** Address of the run's Temporal development server; a namespace per file on it. */
    temporalAddress: string;
    /** The workflow bundle, made from the sources under test. */
    workflowBundle: string;
  }
}
