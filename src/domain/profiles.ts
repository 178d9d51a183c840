const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** The preset that fixes envelope, signature, schedule and timeout together. `cloudevents` follows with the endpoint settings. */
export const profiles = {
  default: {
    /** Waits after a failed attempt: one attempt more than there are waits. */
    retryWaitsMs: [minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour],
    /** Time for one attempt, from dialling to the last byte of the answer. */
    timeoutMs: 10 * second,
  },
} as const;

export type ProfileName = keyof typeof profiles;

export const minTimeoutMs = 1 * second;
export const maxTimeoutMs = 30 * second;
