/** What becomes of a dead letter. `replayed`: its delivery succeeded since, or failed again and has a newer letter. */
export const letterResolutions = ['replayed', 'expired', 'discarded'] as const;
export type LetterResolution = (typeof letterResolutions)[number];

const pattern = /^(whd_[0-7][0-9A-HJKMNP-TV-Z]{25})\.([1-9][0-9]{0,8})$/;

/** A letter's id: its delivery's, a dot, and the round that failed. */
export function letterId(deliveryId: string, round: number): string {
  return `${deliveryId}.${round}`;
}

/** Null when the text can't be a letter's id. */
export function parseLetterId(text: string): { readonly deliveryId: string; readonly round: number } | null {
  const match = pattern.exec(text);
  return match?.[1] ? { deliveryId: match[1], round: Number(match[2]) } : null;
}
