import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/config.js';

const day = 86_400_000;
const retention = (env: Record<string, string>) => loadConfig('standalone', env).retention;
const problems = (env: Record<string, string>): readonly string[] => {
  try {
    loadConfig('standalone', env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe('the retention settings', () => {
  it('keep payloads for a month and all the rest for three', () => {
    expect(retention({})).toEqual({
      payloadsMs: 30 * day,
      attemptsMs: 90 * day,
      deliveriesMs: 90 * day,
      eventsMs: 90 * day,
      noticesMs: 90 * day,
    });
  });

  it('give way to each other where they are defaults', () => {
    expect(retention({ POSTHORN_RETENTION_DELIVERIES: '10d' })).toMatchObject({
      attemptsMs: 10 * day,
      eventsMs: 90 * day,
    });
    expect(retention({ POSTHORN_RETENTION_DELIVERIES: '200d' })).toMatchObject({
      attemptsMs: 90 * day,
      eventsMs: 200 * day,
    });
    expect(retention({ POSTHORN_RETENTION_DELIVERIES: '5d', POSTHORN_RETENTION_EVENTS: '7d' })).toMatchObject({
      payloadsMs: 7 * day,
      attemptsMs: 5 * day,
    });
  });

  it('are refused where something would be kept without what it belongs to', () => {
    expect(problems({ POSTHORN_RETENTION_ATTEMPTS: '91d' })).toEqual([
      'POSTHORN_RETENTION_ATTEMPTS: must not be longer than POSTHORN_RETENTION_DELIVERIES',
    ]);
    expect(problems({ POSTHORN_RETENTION_DELIVERIES: '91d', POSTHORN_RETENTION_EVENTS: '90d' })).toEqual([
      'POSTHORN_RETENTION_DELIVERIES: must not be longer than POSTHORN_RETENTION_EVENTS',
    ]);
    expect(problems({ POSTHORN_RETENTION_PAYLOADS: '91d' })).toEqual([
      'POSTHORN_RETENTION_PAYLOADS: must not be longer than POSTHORN_RETENTION_EVENTS',
    ]);
  });

  it.each([
    ['POSTHORN_RETENTION_PAYLOADS', '59m', '1h – 3650d'],
    ['POSTHORN_RETENTION_ATTEMPTS', '47h', '2d – 3650d'],
    ['POSTHORN_RETENTION_DELIVERIES', '1d', '2d – 3650d'],
    ['POSTHORN_RETENTION_EVENTS', '4000d', '2d – 3650d'],
    ['POSTHORN_RETENTION_NOTICES', '1d', '2d – 3650d'],
  ])('are refused out of bounds: %s=%s', (name, value, bounds) => {
    expect(problems({ [name]: value })).toContain(`${name}: must be ${bounds}`);
  });
});
