import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../support/api.js';
import { testKey } from '../support/posthorn.js';

const run = promisify(execFile);
const guide = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/guides/${name}`, import.meta.url)), 'utf8');
/** Commands, and what of their output the guide shows. */
const example = /```sh\n([^]*?)```\n\n```json\n([^]*?)```/g;

let posthorn: RunningApi;
let directory: string;
beforeEach(async () => {
  posthorn = await startApi();
  directory = mkdtempSync(join(tmpdir(), 'posthorn-guides-'));
});
afterEach(async () => {
  rmSync(directory, { recursive: true, force: true });
  await posthorn.stop();
});

describe("the commands of the producers' guides", () => {
  it.each(['event-catalogue.md', 'api-versions.md', 'content-filters.md'])('do what is shown: %s', async (name) => {
    const text = guide(name);
    const examples = [...text.matchAll(example)];
    expect(examples.length).toBeGreaterThanOrEqual(2);
    // Each block of commands has its output beside it.
    expect(text.split('```sh').length - 1).toBe(examples.length);
    let earlier = '';
    for (const [, commands = '', output = ''] of examples) {
      // What a block sets, such as ID, the next ones use: they run in one shell, whose earlier output is thrown away.
      const script = `set -eu\n{\n${earlier}:\n} > /dev/null\n${commands}`.replaceAll(
        'localhost:8400',
        `127.0.0.1:${posthorn.port}`,
      );
      const { stdout } = await run('bash', ['-c', script], { cwd: directory, env: { ...process.env, KEY: testKey } });
      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject(JSON.parse(output) as object);
      earlier = (/^[A-Z]+=.*$/gm.exec(commands) ?? []).map((line) => `${line}\n`).join('') + earlier;
    }
  });
});
