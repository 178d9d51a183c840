import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const sources = ['src', 'activities', 'workflows'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({ name: `${folder}/${name}`, text: readFileSync(join(root, folder, name), 'utf8') })),
);
const naming = (pattern: RegExp): string[] => sources.filter(({ text }) => pattern.test(text)).map(({ name }) => name);

it('OpenTelemetry is imported by one file, which is loaded only where traces are switched on', () => {
  expect(naming(/from '@opentelemetry\//)).toEqual(['src/telemetry/otel-tracing.ts']);
  expect(naming(/^import .*otel-tracing\.js'/m)).toEqual([]);
  expect(naming(/await import\('\.\/telemetry\/otel-tracing\.js'\)/)).toEqual(['src/core.ts']);
});
