import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { generateOpenApi } from '../../src/http/generate-openapi.js';

type Json = Record<string, unknown>;

let text: string;
let document: { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Json> } };

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly operationId?: string;
  readonly security?: unknown[];
  readonly parameters?: readonly { name: string; description?: string; schema: Json }[];
  readonly responses: Record<string, { description: string; content?: Record<string, { schema: Json }> }>;
}

beforeAll(async () => {
  text = await generateOpenApi();
  document = JSON.parse(text) as typeof document;
});

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })),
  );

describe('docs/reference/openapi.json', () => {
  it('is what the code says (npm run openapi writes it)', () => {
    expect(readFileSync(new URL('../../docs/reference/openapi.json', import.meta.url), 'utf8')).toBe(text);
  });

  it('is generated in the same order every time', async () => {
    expect(await generateOpenApi()).toBe(text);
  });

  it('names every schema, and refers to no other', () => {
    const referred = new Set([...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!));
    expect([...referred].sort()).toEqual(Object.keys(document.components.schemas).filter((name) => referred.has(name)));
    expect(text).not.toMatch(/\$defs|#\/definitions/);
    for (const { operation } of operations())
      for (const { content = {} } of Object.values(operation.responses))
        for (const { schema } of Object.values(content)) expect(Object.keys(schema)).toEqual(['$ref']);
  });

  it('describes every schema, field and parameter', () => {
    const silent: string[] = [];
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (typeof schema['description'] !== 'string') silent.push(name);
      for (const [field, value] of Object.entries((schema['properties'] ?? {}) as Record<string, Json>))
        if (typeof value['description'] !== 'string' && value['$ref'] === undefined) silent.push(`${name}.${field}`);
    }
    for (const { name, operation } of operations()) {
      if (!operation.summary || !operation.description) silent.push(name);
      for (const parameter of operation.parameters ?? [])
        if (!parameter.description) silent.push(`${name} ${parameter.name}`);
    }
    expect(silent).toEqual([]);
  });

  it('says of every call under /v1 that it needs a key, and what may go wrong', () => {
    for (const { name, path, operation } of operations().filter(({ path }) => path.startsWith('/v1/'))) {
      expect(operation.security, name).toEqual([{ bearer: [] }]);
      const statuses = Object.keys(operation.responses);
      expect(statuses, name).toEqual(expect.arrayContaining(['401', '503', ...(path.includes('{id}') ? ['404'] : [])]));
      for (const status of statuses.filter((code) => Number(code) >= 400))
        expect(Object.keys(operation.responses[status]!.content!), `${name} ${status}`).toEqual([
          'application/problem+json',
        ]);
    }
  });

  it('gives every operation a name of its own', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
