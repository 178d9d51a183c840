/**
 * Every `patched()` of the workflows, with the history that was recorded before the change (test/replay/histories).
 * `deliver`'s first-attempt path must stay without one: each costs two events.
 */
export const patches = {
  /** `deadLetterQueue` continues as new in the middle of a window too, and refuses a bad input. */
  boundedWindows: { id: 'bounded-windows', since: '0.2.0', history: 'dead-letter-queue-two-windows' },
} as const satisfies Record<string, { readonly id: string; readonly since: string; readonly history: string }>;
