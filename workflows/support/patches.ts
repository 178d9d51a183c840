/**
 * Every `patched()` of the workflows, with the history that was recorded before the change (test/replay/histories).
 * None yet. `deliver`'s first-attempt path must stay without one: each costs two events.
 */
export const patches = {} as const satisfies Record<string, { readonly since: string; readonly history: string }>;
