import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;
let env: Record<string, string>;
beforeAll(async () => {
  posthorn = await startApi();
  const { id } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
  env = { API: posthorn.api.baseUrl, KEY: testKey, ID: id, PATH: process.env['PATH'] ?? '' };
});
afterAll(() => posthorn.stop());

/** The code blocks of a page of docs/operations, with their indentation. */
function blocksOf(page: string, language: 'sh' | 'sql'): string[] {
  const text = readFileSync(new URL(`../../../docs/operations/${page}`, import.meta.url), 'utf8');
  return [...text.matchAll(new RegExp(`^ *\`\`\`${language}\\n([^]*?)^ *\`\`\`$`, 'gm'))].map(([, code]) => code!);
}

describe('the runbook', () => {
  // `doctor` and what begins with docker, temporal or openssl need more than an API.
  const calls = blocksOf('runbook.md', 'sh')
    .map((block) => block.replace(/^npm run .*$/gm, ''))
    .filter((block) => /^ *curl /.test(block));

  it.each(calls)('has calls that do what they say: %s', async (block) => {
    const script = block.replaceAll('curl -sS', 'curl -sS --fail-with-body');
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env });
    expect(stdout.length).toBeGreaterThan(20);
  });

  it('has such calls', () => expect(calls.length).toBeGreaterThanOrEqual(3));
});

describe('SQL on the pages for operators', () => {
  const statements = ['runbook.md', 'sizing.md'].flatMap((page) =>
    blocksOf(page, 'sql').flatMap((block) => block.split(/;$/m).filter((statement) => statement.trim() !== '')),
  );

  it.each(statements)('runs: %s', async (statement) => {
    await expect(posthorn.sql(statement)).resolves.toBeInstanceOf(Array);
  });

  it('is there', () => expect(statements.length).toBeGreaterThanOrEqual(3));
});
