import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { verifySignature } from '../../../examples/receivers/node/verify-signature.js';
import { parseMessage } from '../../../examples/receivers/node/message.js';
import { examplesDir } from './receiver-process.js';

const guidesDir = fileURLToPath(new URL('../../../docs/guides/', import.meta.url));
const guides = ['receiving-webhooks.md', 'verifying-endpoints.md', 'rotating-secrets.md'];
const read = (guide: string) => readFileSync(join(guidesDir, guide), 'utf8');

interface Excerpt {
  readonly guide: string;
  readonly file: string;
  readonly code: string;
}

const codeBlock = /```(?:ts|python|go)\n([^]*?)^```$/gm;
/** A link to the file, and then its code. */
const excerpt = /^\[`[^`]+`\]\(([^)]+)\)[^\n]*:\n\n```(?:ts|python|go)\n([^]*?)^```$/gm;

const excerpts: readonly Excerpt[] = guides.flatMap((guide) =>
  [...read(guide).matchAll(excerpt)].map(([, file = '', code = '']) => ({
    guide,
    file: resolve(guidesDir, file),
    code,
  })),
);

describe("the consumers' guides", () => {
  it.each(excerpts.map((one) => [one.file.slice(examplesDir.length), one.guide, one] as const))(
    'show %s as it is, in %s',
    (_, __, { file, code }) => {
      expect(file.startsWith(examplesDir)).toBe(true);
      // Whole lines, and enough of them to say something.
      expect(code.split('\n').length).toBeGreaterThan(10);
      expect(`\n${readFileSync(file, 'utf8')}`).toContain(`\n${code}`);
    },
  );

  it.each(['node/verify-signature.ts', 'python/verify_signature.py', 'go/verify_signature.go'])(
    'show all of %s',
    (file) => {
      const text = readFileSync(join(examplesDir, file), 'utf8');
      expect(excerpts.filter(({ code }) => code === text)).toHaveLength(1);
    },
  );

  it('show no other code in these languages', () => {
    const blocks = guides.flatMap((guide) => [...read(guide).matchAll(codeBlock)]);
    expect(blocks).toHaveLength(excerpts.length);
    expect(excerpts.length).toBeGreaterThanOrEqual(6);
  });

  it('show requests that verify', () => {
    const text = read('receiving-webhooks.md');
    const secret = /^The secret of both is `(whsec_[^`]+)`/m.exec(text)?.[1] ?? '';
    const requests = [...text.matchAll(/```http\n([^]*?)\n\n([^]*?)\n```/g)];
    expect(requests).toHaveLength(2);
    for (const [, head = '', body = ''] of requests) {
      const lines = head.split('\n').slice(1);
      const headers = Object.fromEntries(
        lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.slice(line.indexOf(': ') + 2)]),
      );
      const input = { body: Buffer.from(body), headers, secrets: [secret] };
      expect(verifySignature({ ...input, nowMs: Date.parse('2026-01-31T12:00:00Z') })).toMatchObject({ ok: true });
      expect(parseMessage(input.body)).toMatchObject({ type: 'invoice.paid', invoiceId: 'inv_42' });
    }
  });

  it.each(guides)('link only to what is there: %s', (guide) => {
    const targets = [...read(guide).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target);
    const missing = targets.filter((target) => !/^https?:/.test(target) && !existsSync(resolve(guidesDir, target)));
    expect(missing).toEqual([]);
  });

  it('are found from the receivers', () => {
    const receivers = [
      '.',
      ...readdirSync(examplesDir, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? [e.name] : [])),
    ];
    const readmes = receivers.map((name) => join(examplesDir, name, 'README.md')).filter((file) => existsSync(file));
    for (const readme of readmes) {
      const [, target = ''] = /\]\(([^)]*receiving-webhooks\.md)\)/.exec(readFileSync(readme, 'utf8')) ?? [];
      expect(resolve(dirname(readme), target)).toBe(join(guidesDir, 'receiving-webhooks.md'));
    }
    expect(readmes.length).toBeGreaterThanOrEqual(2);
  });
});
