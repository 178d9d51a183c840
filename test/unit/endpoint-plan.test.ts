import { describe, expect, it } from 'vitest';
import { type EndpointFacts, type HealthRules, type HealthTask, planEndpoint } from '../../src/domain/endpoint-plan.js';
import { probeForMs, probeWaitMs } from '../../src/domain/probing.js';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const rules: HealthRules = { warnAfterMs: [day, 3 * day], disableAfterMs: 7 * day, expiryNoticeMs: 7 * day };

type Changes = Partial<Omit<EndpointFacts, 'told'>> & { told?: Partial<EndpointFacts['told']> };

function facts({ told = {}, ...changes }: Changes): EndpointFacts {
  return {
    status: 'active',
    statusReason: null,
    verifyInMs: null,
    verificationEndsInMs: null,
    pingInMs: null,
    probeInMs: null,
    mailInMs: null,
    expiresInMs: null,
    certificateExpiresInMs: null,
    failingForMs: null,
    refused: false,
    ...changes,
    told: {
      failingForMs: 0,
      refused: false,
      anyRefusalAgoMs: null,
      disabled: false,
      expiring: false,
      certificateExpiring: false,
      trouble: 'none',
      ...told,
    },
  };
}

const failing = (failingForMs: number, toldForMs = 0): Changes => ({ failingForMs, told: { failingForMs: toldForMs } });
const disabled = (statusReason: string, changes: Changes = {}): Changes => ({
  status: 'disabled',
  statusReason,
  ...changes,
});

type Case = readonly [
  what: string,
  changes: Changes,
  tasks: readonly HealthTask[],
  next: readonly [HealthTask, number] | null,
];

const cases: readonly Case[] = [
  ['nothing where all is well', {}, [], null],
  ['a warning 24 h after the first failure', failing(hour), [], ['warn', 23 * hour]],
  ['no warning a second before 24 h', failing(day - 1_000), [], ['warn', 1_000]],
  ['the first warning at 24 h', failing(day), ['warn'], ['warn', 2 * day]],
  ['no second warning before 72 h', failing(2 * day, day), [], ['warn', day]],
  ['the second warning at 72 h', failing(3 * day, day), ['warn'], ['disable', 4 * day]],
  ['one warning where both stages are over', failing(4 * day), ['warn'], ['disable', 3 * day]],
  ['no disabling a second before 7 d', failing(7 * day - 1_000, 3 * day), [], ['disable', 1_000]],
  ['disabling at 7 d', failing(7 * day, 3 * day), ['disable'], null],
  ['disabling without a warning first where both are due', failing(9 * day), ['disable'], null],
  ['nothing of that while it is paused', { ...failing(9 * day), status: 'paused' }, [], null],
  [
    'nothing of that once it is disabled',
    disabled('failing', { ...failing(9 * day), told: { disabled: true } }),
    [],
    null,
  ],
  ['a timer that fired 20 ms early', failing(day - 20), ['warn'], ['warn', 2 * day + 20]],

  ['no recovery where nobody was told of trouble', { told: { trouble: 'none' } }, [], null],
  ['a recovery after trouble that was told', { told: { trouble: 'over' } }, ['tell_recovered'], null],
  ['no recovery before a success', { told: { trouble: 'open' } }, [], ['tell_recovered', hour]],
  ['no recovery while it fails again', { ...failing(hour), told: { trouble: 'over' } }, [], ['warn', 23 * hour]],
  ['no recovery while it is disabled', disabled('gone', { told: { trouble: 'over', disabled: true } }), [], null],

  ['gone, told once', disabled('gone'), ['tell_disabled'], null],
  ['gone, known already', disabled('gone', { told: { disabled: true } }), [], null],
  ['nothing told twice of a verification that ran out', disabled('verification_expired'), [], null],

  ['a refusal', { refused: true }, ['tell_refused'], null],
  ['a refusal that is known', { refused: true, told: { refused: true } }, [], null],
  [
    'a refusal after another one an hour ago at the earliest',
    { refused: true, told: { anyRefusalAgoMs: 10 * minute } },
    [],
    ['tell_refused', 50 * minute],
  ],

  ['the expiry notice 7 d ahead', { expiresInMs: 30 * day }, [], ['tell_expiring', 23 * day]],
  ['the expiry notice at once where less is left', { expiresInMs: day }, ['tell_expiring'], ['expire', day]],
  [
    'the notice of a certificate 7 d ahead',
    { certificateExpiresInMs: 10 * day },
    [],
    ['tell_certificate_expiring', 3 * day],
  ],
  [
    'the notice of a certificate at once where less is left',
    { certificateExpiresInMs: day },
    ['tell_certificate_expiring'],
    null,
  ],
  ['no second notice of a certificate', { certificateExpiresInMs: day, told: { certificateExpiring: true } }, [], null],
  [
    'no notice of a certificate of a disabled endpoint',
    disabled('gone', { certificateExpiresInMs: day, told: { disabled: true } }),
    [],
    null,
  ],
  ['the expiry after its notice', { expiresInMs: day, told: { expiring: true } }, [], ['expire', day]],
  ['the expiry alone where its notice is late', { expiresInMs: 0 }, ['expire'], null],
  [
    'the expiry instead of all else',
    { ...failing(9 * day), expiresInMs: 0, pingInMs: 0, refused: true },
    ['expire'],
    null,
  ],
  ['the expiry while it is paused', { status: 'paused', expiresInMs: 0 }, ['expire'], null],
  ['no expiry of what is disabled', disabled('failing', { expiresInMs: 0, told: { disabled: true } }), [], null],
  ['no expiry of what has expired', { status: 'expired', expiresInMs: -day }, [], null],

  [
    'a verification',
    { status: 'pending_verification', verifyInMs: 0, verificationEndsInMs: 3 * day },
    ['verify'],
    ['expire_verification', 3 * day],
  ],
  [
    'the end of a verification',
    { status: 'pending_verification', verifyInMs: 0, verificationEndsInMs: 0 },
    ['expire_verification'],
    null,
  ],
  [
    'the verification of a paused endpoint, without an end',
    { status: 'paused', verifyInMs: 10, verificationEndsInMs: 0 },
    ['verify'],
    null,
  ],

  ['a ping', { pingInMs: 0 }, ['ping'], null],
  ['no ping while it is paused', { status: 'paused', pingInMs: 0 }, [], null],
  ['a probe of what failed', disabled('failing', { probeInMs: 0, told: { disabled: true } }), ['probe'], null],
  ['no probe of what is gone', disabled('gone', { probeInMs: 0, told: { disabled: true } }), [], null],

  ['mails, whatever the state', { status: 'expired', mailInMs: 0 }, ['send_mail'], null],
  ['mails last', { ...failing(day), pingInMs: 0, mailInMs: 0 }, ['warn', 'ping', 'send_mail'], ['warn', 2 * day]],
];

describe('an endpoint’s plan has', () => {
  it.each(cases)('%s', (_, changes, tasks, next) => {
    const plan = planEndpoint(facts(changes), rules);
    expect(plan.tasks).toEqual(tasks);
    expect(plan.next).toEqual(next && { task: next[0], inMs: next[1] });
  });

  it('all that is to come, soonest first, without the look for a recovery', () => {
    const { coming } = planEndpoint(facts({ ...failing(hour), expiresInMs: 8 * day }), rules);
    expect(coming).toEqual([
      { task: 'warn', inMs: 23 * hour },
      { task: 'tell_expiring', inMs: day },
      { task: 'warn', inMs: 3 * day - hour },
      { task: 'disable', inMs: 7 * day - hour },
      { task: 'expire', inMs: 8 * day },
    ]);
    expect(planEndpoint(facts({ told: { trouble: 'open' } }), rules).coming).toEqual([]);
  });
});

describe('a disabled endpoint is probed', () => {
  it('after 1, 2, 4, 8, 16 hours and then daily, for 30 days', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 40].map((tries) => probeWaitMs(tries) / hour)).toEqual([1, 2, 4, 8, 16, 24, 24, 24]);
    expect(probeForMs).toBe(30 * day);
  });
});
