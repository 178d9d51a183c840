import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configurationKeys, loadConfig } from '../../src/config/config.js';
import {
  attemptErrorCodes,
  deliveryReasons,
  deliveryStatuses,
  endpointStatuses,
} from '../../src/domain/closed-lists.js';
import { problemTitles } from '../../src/http/problems/problem.js';

const page = (name: string): string => readFileSync(new URL(`../../docs/reference/${name}`, import.meta.url), 'utf8');
/** The cells of all table rows whose first cell is code. */
const rows = (text: string): string[][] =>
  [...text.matchAll(/^\| `.*\|$/gm)].map(([line]) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
const named = (text: string): string[] => rows(text).map(([first]) => first!.replace(/^`([^`]*)`$/, '$1'));
const section = (text: string, title: string): string => text.split(`### ${title}\n`)[1]?.split('\n#')[0] ?? '';

describe('the reference', () => {
  it('has a row for every setting, and for no other', () => {
    expect(named(page('configuration.md'))).toEqual(configurationKeys);
  });

  it('tells the defaults that the code has', () => {
    const config = loadConfig('standalone', {});
    const defaults = Object.fromEntries(rows(page('configuration.md')).map(([name, value]) => [name, value]));
    const expected: Record<string, string | number> = {
      POSTHORN_HTTP_PORT: config.http.port,
      POSTHORN_HTTP_BODY_LIMIT_BYTES: config.http.bodyLimitBytes,
      POSTHORN_HTTP_BATCH_LIMIT_BYTES: config.http.batchLimitBytes,
      POSTHORN_HTTP_BATCH_LIMIT_EVENTS: config.http.batchLimitEvents,
      POSTHORN_DATA_DIR: config.dataDir,
      POSTHORN_DATABASE_POOL_SIZE: config.database.poolSize,
      POSTHORN_POSTGRES_PORT: config.database.embeddedPort,
      TEMPORAL_NAMESPACE: config.temporal.namespace,
      POSTHORN_TEMPORAL_PORT: config.temporal.embeddedPort,
      POSTHORN_TEMPORAL_UI_PORT: config.temporal.embeddedUiPort,
      POSTHORN_DELIVERY_MAX_CONCURRENT_ATTEMPTS: config.delivery.maxConcurrentAttempts,
      POSTHORN_DELIVERY_LETTER_EXPIRY: `${config.delivery.letterExpiryMs / 86_400_000}d`,
      POSTHORN_DELIVERY_ALERT_WINDOW: `${config.delivery.alertWindowMs / 1_000}s`,
      POSTHORN_SAMPLE_RECEIVER_PORT: config.sampleReceiver.port,
      POSTHORN_LOG_LEVEL: config.logLevel,
    };
    for (const [name, value] of Object.entries(expected))
      expect([name, defaults[`\`${name}\``]]).toEqual([name, `\`${value}\``]);
  });

  it('has a row for every problem code, and for no other', () => {
    expect(named(page('errors.md')).sort()).toEqual(Object.keys(problemTitles).sort());
  });

  it.each([
    ['Delivery `status`', deliveryStatuses],
    ['Delivery `reason`', deliveryReasons],
    ['Attempt `error_code`', attemptErrorCodes],
    ['Endpoint `status`', endpointStatuses],
  ])('lists every %s', (title, values) => {
    expect(named(section(page('api.md'), title))).toEqual(values);
  });
});
