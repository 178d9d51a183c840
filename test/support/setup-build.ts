import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import './provided.js';

/** Tests that kill processes run the built ones. */
export default function setup({ provide }: TestProject): void {
  execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))], {
    stdio: 'inherit',
  });
  provide('workflowBundle', fileURLToPath(new URL('../../dist/workflow-bundle.js', import.meta.url)));
}
