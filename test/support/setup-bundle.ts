import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import './provided.js';

/** The bundle that production would run, gate included. */
export default function setup({ provide }: TestProject): void {
  const path = fileURLToPath(new URL('../../node_modules/.cache/posthorn/workflow-bundle.js', import.meta.url));
  execFileSync(
    process.execPath,
    [fileURLToPath(new URL('../../scripts/bundle-workflows.mjs', import.meta.url)), path],
    { stdio: 'inherit' },
  );
  provide('workflowBundle', path);
}
