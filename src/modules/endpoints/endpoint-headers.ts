import { type CustomHeaders, headerMask, maskHeaders } from '../../domain/custom-headers.js';
import { Problem, printableName } from '../../http/problems/problem.js';

/**
 * The headers to store: a value that is the mask is what somebody read, and keeps the stored one.
 * @throws {Problem} when nothing is stored under that name.
 */
export function unmaskHeaders(given: CustomHeaders, stored: CustomHeaders): CustomHeaders {
  // Only what was shown as the mask: a value in clear that isn't sent back is to be replaced.
  const shown = maskHeaders(stored);
  const kept = new Map(
    Object.entries(stored)
      .filter(([name]) => shown[name] === headerMask)
      .map(([name, value]) => [name.toLowerCase(), value]),
  );
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (value !== headerMask) return [name, value];
      const before = kept.get(name.toLowerCase());
      if (before !== undefined) return [name, before];
      throw new Problem(
        422,
        'invalid_field',
        `${headerMask} keeps the stored value of a header, and there is none of this name; an accepted example is {"Authorization": "Bearer 3f9a"}`,
        { field: `headers.${printableName(name)}` },
      );
    }),
  );
}
