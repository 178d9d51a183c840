#!/usr/bin/env node
/** `npm run check`: every static gate, all of them even where one fails, with a line for each. */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, 'node_modules', '.bin', name);
/** @type {[name: string, command: string, args: string[]][]} */
const gates = [
  ['format', bin('prettier'), ['--check', '--log-level', 'warn', '.']],
  ['types', bin('tsc'), ['--noEmit']],
  ['types of the workflow sandbox', bin('tsc'), ['--noEmit', '-p', 'workflows/tsconfig.json']],
  ['lint', bin('oxlint'), ['--type-aware', '--quiet']],
  [
    'architecture',
    bin('depcruise'),
    ['--config', '.dependency-cruiser.cjs', 'src', 'workflows', 'activities', 'examples', 'bench'],
  ],
  [
    'workflow bundle',
    process.execPath,
    ['scripts/bundle-workflows.mjs', 'node_modules/.cache/posthorn/workflow-bundle.js'],
  ],
];

if (process.argv.includes('--help')) {
  process.stdout.write(`Usage: npm run check\nRuns the static gates: ${gates.map(([name]) => name).join(', ')}.\n`);
  process.exit(0);
}

let failed = 0;
for (const [name, command, args] of gates) {
  const startedAt = Date.now();
  const { code, output } = await run(command, args);
  const seconds = String(Math.round((Date.now() - startedAt) / 100) / 10);
  process.stdout.write(`${code === 0 ? '✔' : '✖'} ${name} (${seconds} s)\n`);
  if (code !== 0) {
    failed += 1;
    process.stdout.write(`${output}\n`);
  }
}
process.exit(failed === 0 ? 0 : 1);

/** @returns {Promise<{ code: number, output: string }>} */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 1, output: String(error) }));
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
