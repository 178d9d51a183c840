#!/usr/bin/env node
/** Adds up the JSON reports of several test runs and prints one closing line; exits 1 where a test failed or none ran. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
if (folder === undefined || folder === '--help') {
  process.stdout.write('Usage: node scripts/count-tests.mjs FOLDER\nFOLDER holds vitest JSON reports.\n');
  process.exit(folder === undefined ? 2 : 0);
}
let passed = 0;
let failed = 0;
for (const name of readdirSync(folder)) {
  const report = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  passed += report.numPassedTests;
  // A file that can't be loaded fails without a test of its own.
  failed += Math.max(report.numFailedTests, report.success ? 0 : 1);
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
