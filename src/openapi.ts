import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { generateOpenApi } from './http/generate-openapi.js';

/** `npm run openapi`: writes the API's description from the code; with `--check`, only compares. */
const file = new URL(
  import.meta.url.includes('/dist/src/') ? '../../docs/reference/openapi.json' : '../docs/reference/openapi.json',
  import.meta.url,
);
const text = await generateOpenApi();
if (!process.argv.includes('--check')) {
  writeFileSync(file, text);
  process.stdout.write(`Written: ${fileURLToPath(file)}\n`);
} else if (current() !== text) {
  process.stderr.write('docs/reference/openapi.json is not what the code says: run npm run openapi\n');
  process.exitCode = 1;
}

function current(): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
