/** What an endpoint's answers to a verification mean. */

/** The challenge comes back as text, or as JSON with a top-level `challenge`. */
export function answersChallenge(body: Buffer, challenge: string): boolean {
  const text = body.toString('utf8').trim();
  if (text === challenge) return true;
  try {
    const value: unknown = JSON.parse(text);
    if (value === challenge) return true;
    return typeof value === 'object' && value !== null && 'challenge' in value && value.challenge === challenge;
  } catch {
    return false;
  }
}

/** `WebHook-Allowed-Origin` names us, or anybody. Origins are host names, so their case says nothing. */
export function grantsOrigin(headers: readonly (readonly [string, string])[], publicHost: string): boolean {
  return headers
    .filter(([name]) => name.toLowerCase() === 'webhook-allowed-origin')
    .flatMap(([, value]) => value.split(','))
    .map((origin) => origin.trim().toLowerCase())
    .some((origin) => origin === '*' || origin === publicHost.toLowerCase());
}

/** `WebHook-Allowed-Rate`: requests a minute; null for `*` and for what is no such number. */
export function allowedRate(header: string | undefined): number | null {
  const text = header?.trim() ?? '';
  if (!/^[0-9]{1,9}$/.test(text)) return null;
  const rate = Number(text);
  return rate > 0 ? rate : null;
}
