#!/usr/bin/env node
/**
 * Takes the picture of a retried delivery in the Temporal Web UI (docs/images/retried-delivery.png), against a running `npm start`.
 * Needs a Chromium: CHROMIUM_PATH, /usr/bin/chromium by default.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const api = process.env.POSTHORN_API_URL ?? `http://127.0.0.1:${process.env.POSTHORN_HTTP_PORT ?? 8400}`;
const ui = `http://127.0.0.1:${process.env.POSTHORN_TEMPORAL_UI_PORT ?? 8434}`;
if (process.argv.includes('--help')) {
  process.stdout.write(
    'Usage: node scripts/screenshot-web-ui.mjs [FILE]\nTakes a picture of a retried delivery; needs a running `npm start`.\n',
  );
  process.exit(0);
}
const file = process.argv[2] ?? join(root, 'docs', 'images', 'retried-delivery.png');
const key =
  process.env.POSTHORN_API_KEY ??
  readFileSync(join(process.env.POSTHORN_DATA_DIR ?? join(root, '.posthorn'), 'api-key'), 'utf8').trim();

let requests = 0;
const endpoint = createServer((request, reply) => {
  request.resume();
  requests += 1;
  reply.writeHead(requests < 3 ? 503 : 200).end();
});
await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
const type = `invoice.paid`;
const created = await call('POST', '/v1/webhooks/subscriptions', {
  url: `http://127.0.0.1:${endpoint.address().port}/hook`,
  events: [type],
  retry_waits_ms: [2_000, 4_000, 8_000],
});
const { deliveries } = await call('POST', '/v1/events', { type, data: { invoice_id: 'in_1' } });
const { id } = deliveries.find((delivery) => delivery.endpoint_id === created.id);
const done = await call('GET', `/v1/webhook-deliveries/${id}?wait=30s`);
if (done.status !== 'succeeded') throw new Error(`the delivery is ${done.status}`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--no-first-run',
  ],
});
try {
  const page = await browser.newPage({ viewport: { width: 1500, height: 1250 }, colorScheme: 'light' });
  await page.goto(`${ui}/namespaces/default/workflows/${id}`);
  await page.getByText('attempt 3', { exact: false }).first().waitFor({ timeout: 30_000 });
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: file });
} finally {
  await browser.close();
  await call('DELETE', `/v1/webhooks/subscriptions/${created.id}`);
  endpoint.close();
  endpoint.closeAllConnections();
}
process.stdout.write(`${file}: ${id}, ${requests} requests\n`);

async function call(method, path, body) {
  const response = await fetch(api + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}
