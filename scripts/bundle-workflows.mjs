#!/usr/bin/env node
/** Bundles the workflows to dist/workflow-bundle.js, and refuses a bundle that grew or took in what has no business in the sandbox. */
import { bundleWorkflowCode } from '@temporalio/worker';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const maxBytes = 2_500_000;
/** A careless import of one of these bundles silently. */
const forbidden = [
  'node_modules/typeorm/',
  'node_modules/pg/',
  'node_modules/undici/',
  'node_modules/@nestjs/',
  'node_modules/zod/',
  '/src/database/',
  '/src/delivery/',
  '/activities/index',
];

const target = process.argv[2] ?? join(root, 'dist', 'workflow-bundle.js');
const quiet = { trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error, log() {} };
const workflowsPath = join(root, 'workflows', 'index.ts');
// Evaluated once, not for every run: none of these modules keeps anything.
const { code } = await bundleWorkflowCode({ workflowsPath, preloadModules: [workflowsPath], logger: quiet });
const bytes = Buffer.byteLength(code);
const found = forbidden.filter((name) => code.includes(name));
if (bytes > maxBytes || found.length > 0) {
  console.error(
    `The workflow bundle is not fit for the sandbox: ${bytes} bytes (at most ${maxBytes})${found.length ? `, it holds ${found.join(', ')}` : ''}`,
  );
  process.exit(1);
}
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, code);
