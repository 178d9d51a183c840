import { Problem } from '../../http/problems/problem.js';

/** The ETag of a version of an endpoint's settings. */
export function toETag(version: number): string {
  return `"${version}"`;
}

// RFC 9110, sections 5.6.1 and 8.8.3: a list, in which senders may leave empty places.
const entityTag = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;
const listOfTags = /^[ \t,]*\0(?:[ \t]*,[ \t,]*\0)*[ \t,]*$/;

/**
 * Does `If-Match` allow to change a thing with this ETag (RFC 9110, section 13.1.1)? No header and `*` allow it always. The
 * comparison is the strong one: a weak tag matches nothing.
 * @throws {Problem} when the header can't be read.
 */
export function allowsChange(ifMatch: string | undefined, etag: string): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true;
  if (!listOfTags.test(ifMatch.replace(entityTag, '\0'))) {
    const rule = `If-Match is an ETag as the API gave it, such as ${etag}, a list of them, or *`;
    throw new Problem(422, 'invalid_field', rule, { field: 'If-Match' });
  }
  return [...ifMatch.matchAll(entityTag)].some(([tag]) => tag === etag);
}
