import { type EnvelopeName, type ProfileName, profiles, type SignatureName } from './profiles.js';

/** Settings of an endpoint as its owner set them; null: the profile's. */
export interface EndpointSettings {
  readonly profile: string;
  readonly envelope: EnvelopeName | null;
  readonly signature: SignatureName | null;
  readonly timeoutMs: number | null;
  readonly retryWaitsMs: readonly number[] | null;
}

export interface EffectiveSettings {
  readonly envelope: EnvelopeName;
  readonly signature: SignatureName;
  readonly timeoutMs: number;
  readonly retryWaitsMs: readonly number[];
}

/** What counts. `retryWaitsMs` of the configuration stands in for all profiles' schedules, for trials and tests. */
export function effectiveSettings(set: EndpointSettings, retryWaitsMs: readonly number[] | null): EffectiveSettings {
  // A row from elsewhere may name a profile that we don't know: its deliveries still need a schedule to fail by.
  const profile = Object.hasOwn(profiles, set.profile) ? profiles[set.profile as ProfileName] : profiles.default;
  return {
    envelope: set.envelope ?? profile.envelope,
    signature: set.signature ?? profile.signature,
    timeoutMs: set.timeoutMs ?? profile.timeoutMs,
    retryWaitsMs: set.retryWaitsMs ?? retryWaitsMs ?? profile.retryWaitsMs,
  };
}
