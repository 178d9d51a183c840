import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { generateOpenApi } from '../../src/http/generate-openapi.js';

it('x', async () => {
  const text = await generateOpenApi();
  expect(text.length).toBeGreaterThan(100);
  (await import('node:fs')).writeFileSync('/tmp/openapi.json', text);
});
