import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signatureHeaders } from '../../../src/delivery/signature.js';
import { type RunningApi, startApi } from '../../support/api.js';
import { testKey } from '../../support/posthorn.js';
import { clientCertificates } from '../../support/tls/certificates.js';

let posthorn: RunningApi;
let dir: string;
beforeAll(async () => {
  posthorn = await startApi();
  dir = mkdtempSync(join(tmpdir(), 'posthorn-guides-'));
  writeFileSync(join(dir, 'client.pem'), clientCertificates.a.certificate);
  writeFileSync(join(dir, 'client-key.pem'), clientCertificates.a.private_key);
});
afterAll(async () => {
  rmSync(dir, { recursive: true, force: true });
  await posthorn.stop();
});

/** The commands of a guide, block by block, as they stand there. */
function commandsOf(guide: string): string[] {
  const text = readFileSync(new URL(`../../../docs/guides/${guide}`, import.meta.url), 'utf8');
  return [...text.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)].map(([, indent = '', code = '']) =>
    code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

async function run(command: string, env: Record<string, string> = {}): Promise<string> {
  const here = command.replaceAll('localhost:8400', `127.0.0.1:${posthorn.port}`);
  const { stdout } = await promisify(execFile)('sh', ['-ec', here], {
    cwd: dir,
    env: { PATH: process.env['PATH'] ?? '', KEY: testKey, ...env },
  });
  return stdout;
}

describe('the commands of docs/guides/credentials.md', () => {
  const commands = commandsOf('credentials.md');

  it('are one for each kind of credentials', () => {
    expect(commands).toHaveLength(6);
  });

  it.each(commands.map((command, n) => [n, command] as const))(
    'create the endpoint that they speak of: %i',
    async (n, command) => {
      const endpoint = JSON.parse(await run(command)) as Record<string, unknown>;
      const shown = [
        { type: 'basic', username: '***', password: '***' },
        { type: 'basic', username: '***', password: '***' },
        { type: 'bearer', token: '***' },
        { type: 'header', name: 'X-Api-Key', value: '***' },
        { type: 'oauth2_client_credentials', client_secret: '***', scope: 'hooks:write' },
        null,
      ][n];
      expect(endpoint).toMatchObject({ url: 'https://hooks.example.com/posthorn', credentials: shown });
      expect(endpoint['client_certificate'] === null).toBe(n !== 5);
    },
  );
});

it('the commands of docs/guides/ed25519-signatures.md work, in the order in which one needs them', async () => {
  const [wellKnown, byHand, make, change, rotate, ...others] = commandsOf('ed25519-signatures.md');
  expect(others).toEqual([]);
  const { id } = await posthorn.api.createEndpoint('https://hooks.example.com/posthorn', ['a']);
  const made = JSON.parse(await run(make!, { ID: id })) as { public_key: string; secret: null };
  expect(made).toMatchObject({ type: 'ed25519', secret: null });
  const changed = JSON.parse(await run(change!, { ID: id })) as object;
  expect(changed).toMatchObject({ signature: 'standard_webhooks_ed25519', public_key: made.public_key });
  const published = JSON.parse(await run(wellKnown!, { ID: id })) as { keys: { public_key: string }[] };
  expect(published.keys.map(({ public_key }) => public_key)).toEqual([made.public_key]);

  const [row] = await posthorn.sql<{ sealed: string }>(
    `select sealed from endpoint_secrets where endpoint_id = $1 and type = 'ed25519'`,
    [id],
  );
  const secret = posthorn.core.secrets.open(row!.sealed, id);
  const body = '{"a":"ä"}';
  const message = { messageId: 'whd_1', body: Buffer.from(body), secrets: [secret], unixSeconds: 1_769_860_800 };
  const headers = signatureHeaders('standard_webhooks_ed25519', message);
  const request = {
    ID: id,
    BODY: body,
    WEBHOOK_ID: 'whd_1',
    TIMESTAMP: headers['Webhook-Timestamp']!,
    SIGNATURE: headers['Webhook-Signature']!.replace('v1a,', ''),
  };
  expect(await run(byHand!, request)).toContain('Signature Verified Successfully');
  await expect(run(byHand!, { ...request, BODY: `${body} ` })).rejects.toThrow();

  expect(JSON.parse(await run(rotate!, { ID: id }))).toMatchObject({ type: 'ed25519', current: true });
});
