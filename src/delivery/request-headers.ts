/** These belong to the connection; undici sets the ones that are needed. */
const ours = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'content-length',
  'te',
  'trailer',
  'upgrade',
  'expect',
]);

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const value = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Says what is wrong with a request's headers, without quoting any value; null when they can be sent. */
export function findHeaderFault(headers: Readonly<Record<string, string>>): string | null {
  const seen = new Set<string>();
  for (const [name, text] of Object.entries(headers)) {
    if (!token.test(name)) return "a header's name is not a valid HTTP token";
    const lower = name.toLowerCase();
    if (ours.has(lower)) return `the header ${lower} cannot be set`;
    if (seen.has(lower)) return `the header ${lower} is given twice`;
    seen.add(lower);
    if (typeof text !== 'string' || !value.test(text)) return `the value of the header ${lower} cannot be sent`;
  }
  return null;
}
