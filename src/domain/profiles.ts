const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

export const envelopeNames = ['default', 'cloudevents'] as const;
export type EnvelopeName = (typeof envelopeNames)[number];

export const signatureNames = ['default', 'standard_webhooks', 'standard_webhooks_ed25519'] as const;
export type SignatureName = (typeof signatureNames)[number];

/** `full`: the data as published. `thin`: the event's id in its place, for the consumer to fetch. */
export const payloadNames = ['full', 'thin'] as const;
export type PayloadName = (typeof payloadNames)[number];

export const verificationWays = ['challenge', 'handshake', 'ping'] as const;
export type VerificationWay = (typeof verificationWays)[number];

export const profileNames = ['default', 'cloudevents'] as const;
export type ProfileName = (typeof profileNames)[number];

/** The preset that fixes envelope, signature, schedule and timeout together. */
export interface Profile {
  readonly envelope: EnvelopeName;
  readonly signature: SignatureName;
  /** Ways by which an endpoint shows that it wants our requests, in this order until one of them passes. */
  readonly verification: readonly VerificationWay[];
  /** Waits after a failed attempt: one attempt more than there are waits. */
  readonly retryWaitsMs: readonly number[];
  /** Time for one attempt, from dialling to the last byte of the answer. */
  readonly timeoutMs: number;
}

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  default: {
    envelope: 'default',
    signature: 'default',
    verification: ['challenge'],
    retryWaitsMs: [minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour],
    timeoutMs: 10 * second,
  },
  cloudevents: {
    envelope: 'cloudevents',
    signature: 'standard_webhooks',
    verification: ['handshake', 'ping'],
    retryWaitsMs: [30 * second, 2 * minute, 15 * minute, hour, 4 * hour, 12 * hour],
    timeoutMs: 30 * second,
  },
};

export const minTimeoutMs = 1 * second;
export const maxTimeoutMs = 30 * second;
