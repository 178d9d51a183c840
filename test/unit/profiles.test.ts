import { describe, expect, it } from 'vitest';
import {
  envelopeNames,
  maxTimeoutMs,
  minTimeoutMs,
  profileNames,
  profiles,
  signatureNames,
  verificationWays,
} from '../../src/domain/profiles.js';

const seconds = (...counts: number[]) => counts.map((count) => count * 1_000);

describe('a profile', () => {
  it.each([
    [
      'default',
      {
        envelope: 'default',
        signature: 'default',
        verification: ['challenge'],
        retryWaitsMs: seconds(60, 300, 1_800, 7_200, 43_200),
        timeoutMs: 10_000,
      },
    ],
    [
      'cloudevents',
      {
        envelope: 'cloudevents',
        signature: 'standard_webhooks',
        verification: ['handshake', 'ping'],
        retryWaitsMs: seconds(30, 120, 900, 3_600, 14_400, 43_200),
        timeoutMs: 30_000,
      },
    ],
  ] as const)('fixes everything that %s means', (name, profile) => {
    expect(profiles[name]).toEqual(profile);
  });

  it.each(profileNames)('names only what exists: %s', (name) => {
    const { envelope, signature, verification, timeoutMs } = profiles[name];
    expect(envelopeNames).toContain(envelope);
    expect(signatureNames).toContain(signature);
    expect(verification.filter((way) => !verificationWays.includes(way))).toEqual([]);
    expect(timeoutMs).toBeGreaterThanOrEqual(minTimeoutMs);
    expect(timeoutMs).toBeLessThanOrEqual(maxTimeoutMs);
  });

  it('is listed', () => {
    expect([...profileNames].sort()).toEqual(Object.keys(profiles).sort());
  });
});
