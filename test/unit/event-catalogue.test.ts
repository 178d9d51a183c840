import { describe, expect, it } from 'vitest';
import { PublishRules, publishRuleAgeMs } from '../../src/database/publish-rules.js';
import { conversionPath, isVersion, nameWarning, planVersion, versionFor } from '../../src/domain/event-catalogue.js';

const versions = [
  { version: '2023-01-01', pointers: null, conversions: {} },
  { version: '2024-01-01', pointers: null, conversions: { '2023-01-01': 'a' } },
  { version: '2025-01-01', pointers: null, conversions: { '2024-01-01': 'b' } },
  { version: '2026-01-01', pointers: null, conversions: { '2025-01-01': 'c', '2023-01-01': 'd' } },
];
const path = (from: string, to: string) => conversionPath(from, to, versions)?.map(({ expression }) => expression);
const rules = { payload: 'full' as const, pointers: [], versions };

describe('a pinned endpoint', () => {
  const names = versions.map(({ version }) => version);

  it.each([
    ['newest', '2026-01-01'],
    ['2026-01-01', '2026-01-01'],
    ['2025-12-31', '2025-01-01'],
    ['2099-01-01', '2026-01-01'],
    ['2020-01-01', '2023-01-01'],
  ])('with %s gets the version %s', (pin, version) => expect(versionFor(pin, names)).toBe(version));

  it('gets no version of a type that has none', () => expect(versionFor('2026-01-01', [])).toBeNull());
});

describe('the way to an older version', () => {
  it('is direct where there is a conversion, else leads through the versions in between', () => {
    expect(path('2026-01-01', '2023-01-01')).toEqual(['d']);
    expect(path('2026-01-01', '2024-01-01')).toEqual(['c', 'b']);
    expect(path('2025-01-01', '2023-01-01')).toEqual(['b', 'a']);
    expect(path('2023-01-01', '2024-01-01')).toBeUndefined();
  });

  it('is taken for newer events only, and is never left out', () => {
    expect(planVersion(rules, '2024-01-01', '2025-06-01')).toEqual({ kind: 'as_published' });
    expect(planVersion(rules, null, '2023-06-01')).toEqual({ kind: 'as_published' });
    expect(planVersion(rules, 'my own', '2023-06-01')).toEqual({ kind: 'as_published' });
    expect(planVersion(rules, '2024-01-01', '2023-06-01')).toMatchObject({ kind: 'convert', to: '2023-01-01' });
    // A version that was removed since: nobody knows how to convert it.
    expect(planVersion(rules, '2025-07-01', '2024-06-01')).toEqual({
      kind: 'impossible',
      from: '2025-07-01',
      to: '2024-01-01',
    });
  });
});

describe('names', () => {
  it.each(['invoice.pay', 'order.item.add', 'user.sign_up.cancel', 'card.re-send'])('%s reads as a command', (name) => {
    expect(nameWarning(name)).toContain(name);
  });
  it.each(['invoice.paid', 'order.item.added', 'refund.issued', 'invoice.payment'])('%s does not', (name) => {
    expect(nameWarning(name)).toBeNull();
  });
  it.each(['2026-02-29', '2026-13-01', '2026-1-1', 'newest', ''])('%j is no version', (text) => {
    expect(isVersion(text)).toBe(false);
  });
});

describe('what publishing knows of types', () => {
  const key = { tenantId: 't', name: 'a.b' };

  it('is read once a second at most, and again when it was changed here', async () => {
    let asked = 0;
    let now = 0;
    const known = new PublishRules(
      {
        publishRules: async (keys) => {
          asked += 1;
          return keys.map((one) => ({ ...one, newest: null, enforce: false, revision: String(asked) }));
        },
      },
      () => now,
    );
    const revision = async () => (await known.of([key, key]))[1]?.revision;
    expect([await revision(), await revision()]).toEqual(['1', '1']);
    known.forget('t', ['a.b']);
    expect(await revision()).toBe('2');
    now += publishRuleAgeMs;
    expect(await revision()).toBe('3');
  });

  it('is read anew in passing while it is used, and never against a change', async () => {
    let now = 0;
    let asked = 0;
    let answer: Promise<unknown> = Promise.resolve();
    const known = new PublishRules(
      {
        publishRules: async (keys) => {
          asked += 1;
          const revision = String(asked);
          await answer;
          return keys.map((one) => ({ ...one, newest: null, enforce: false, revision }));
        },
      },
      () => now,
    );
    const revision = async () => (await known.of([key]))[0]?.revision;
    expect(await revision()).toBe('1');
    let answerNow!: () => void;
    answer = new Promise<void>((resolve) => (answerNow = resolve));
    now += publishRuleAgeMs / 2;
    // Nobody waits for the second look.
    expect([await revision(), await revision(), asked]).toEqual(['1', '1', 2]);
    answerNow();
    await new Promise(setImmediate);
    now += publishRuleAgeMs / 2 - 1;
    expect(await revision()).toBe('2');

    answer = new Promise<void>((resolve) => (answerNow = resolve));
    now += publishRuleAgeMs / 4;
    expect([await revision(), asked]).toEqual(['2', 3]);
    known.forget('t', ['a.b']);
    answerNow();
    await new Promise(setImmediate);
    // What the third look had read may be from before the change.
    answer = Promise.resolve();
    expect(await revision()).toBe('4');
  });

  it('answers by what it knew, whatever is forgotten while another type is read', async () => {
    const other = { tenantId: 't', name: 'c.d' };
    const known: PublishRules = new PublishRules({
      publishRules: async (keys) => {
        if (keys.length === 1 && keys[0]!.name === other.name) known.forget('t', ['a.b']);
        return keys.map((one) => ({ ...one, newest: null, enforce: false, revision: one.name }));
      },
    });
    await known.of([key]);
    expect((await known.of([key, other])).map((rule) => rule?.revision)).toEqual(['a.b', 'c.d']);
  });
});
