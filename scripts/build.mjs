#!/usr/bin/env node
/** `npm run build`: compiles with the Nest CLI, then bundles the workflows; skips what is up to date, so that `npm start` starts. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const inputs = [
  'src',
  'workflows',
  'activities',
  'examples',
  'bench',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
];
const stamp = join(root, 'dist', '.built');

const fingerprint = createHash('sha256');
for (const input of inputs) add(join(root, input));
const wanted = fingerprint.digest('hex');

if (process.argv.includes('--help')) {
  process.stdout.write(
    'Usage: npm run build [-- --force]\nCompiles to dist/ and bundles the workflows; does nothing where dist/ is up to date.\n',
  );
  process.exit(0);
}
if (!process.argv.includes('--force') && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) process.exit(0);

process.stderr.write('Building …\n');
run(process.execPath, [join(root, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js'), 'build']);
run(process.execPath, [join(root, 'scripts', 'bundle-workflows.mjs')]);
writeFileSync(stamp, wanted);

function add(path) {
  if (!existsSync(path)) return;
  if (statSync(path).isDirectory()) {
    for (const name of readdirSync(path).sort()) if (name !== '__pycache__') add(join(path, name));
    return;
  }
  fingerprint.update(path.slice(root.length)).update('\0').update(readFileSync(path)).update('\0');
}

function run(command, args) {
  mkdirSync(join(root, 'dist'), { recursive: true });
  const { status } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) process.exit(status ?? 1);
}
