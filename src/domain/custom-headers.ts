/** An endpoint's own headers, which go out with every request to it. The same rules hold when they are written and when they are sent. */

export type CustomHeaders = Readonly<Record<string, string>>;

export const maxCustomHeaders = 20;
export const maxHeaderNameLength = 100;
export const maxHeaderValueLength = 2_000;

const example = '{"Authorization": "Bearer 3f9a"}';

/** A closed list, in lower case. A name that ends in `*` stands for all that begin so. */
export const refusedHeaders = {
  /** These frame the message; what they say has to be true of each single one. */
  framing: [
    'accept-encoding',
    'alt-used',
    'connection',
    'content-*',
    'date',
    'expect',
    'host',
    'http2-settings',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'x-http-method',
    'x-http-method-override',
    'x-method-override',
  ],
  /** These name who sent it, by which way and on whose behalf, and receivers believe them. */
  parties: [
    'client-ip',
    'forwarded',
    'from',
    'origin',
    'proxy-*',
    'referer',
    'true-client-ip',
    'via',
    'x-client-ip',
    'x-forwarded-*',
    'x-original-*',
    'x-real-ip',
    'x-rewrite-url',
  ],
  /** Ours, or read by verifiers and parsers in place of ours. Traces and keys of one request can't be the same for all. */
  message: ['baggage', 'ce-*', 'idempotency-key', 'svix-*', 'traceparent', 'tracestate', 'user-agent', 'webhook-*'],
} as const;

const refused: readonly string[] = Object.values(refusedHeaders).flat();
const refusedNames = new Set(refused.filter((name) => !name.endsWith('*')));
const refusedPrefixes = refused.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));

export type HeadersJudgement =
  | { readonly ok: true; readonly headers: CustomHeaders }
  /** `name` is the header that breaks the rule, null where it is all of them; a long one is cut. No value is ever repeated. */
  | { readonly ok: false; readonly name: string | null; readonly rule: string };

// RFC 9110, section 5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// RFC 9110, section 5.5, without what senders and receivers decode differently: tabs and everything beyond ASCII.
const printableAscii = /^[\x20-\x7e]*$/;

/** Is this one of the names that an endpoint can't set? In any case. */
export function isRefusedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return refusedNames.has(lower) || refusedPrefixes.some((prefix) => lower.startsWith(prefix));
}

/** Judges an endpoint's own headers: `{"<name>": "<value>"}`. What is accepted is sent as it stands. */
export function judgeHeaders(given: unknown): HeadersJudgement {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return refuse(null, 'headers are an object of names and values');
  }
  const entries: [string, unknown][] = Object.entries(given);
  if (entries.length > maxCustomHeaders) return refuse(null, `an endpoint has at most ${maxCustomHeaders} headers`);
  const seen = new Set<string>();
  const accepted: [string, string][] = [];
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    const rule = findNameFault(name) ?? (seen.has(lower) ? 'a header is given once, whatever its case' : null);
    if (rule !== null) return refuse(name, rule);
    if (typeof value !== 'string') return refuse(name, 'the value of a header is a string');
    const valueRule = findValueFault(value);
    if (valueRule !== null) return refuse(name, valueRule);
    seen.add(lower);
    accepted.push([name, value]);
  }
  // Not by assignment: a header may be called __proto__.
  return { ok: true, headers: Object.fromEntries(accepted) };
}

function findNameFault(name: string): string | null {
  if (name === '') return 'the name of a header is not empty';
  if (name.length > maxHeaderNameLength) return `the name of a header has at most ${maxHeaderNameLength} characters`;
  if (!token.test(name)) return "the name of a header has only letters, digits and !#$%&'*+-.^_`|~";
  return isRefusedHeader(name) ? 'this header is set by Posthorn, or names who sends the request' : null;
}

function findValueFault(value: string): string | null {
  if (value === '') return 'the value of a header is not empty';
  if (value.length > maxHeaderValueLength)
    return `the value of a header has at most ${maxHeaderValueLength} characters`;
  if (!printableAscii.test(value))
    return 'the value of a header has only printable ASCII characters, no line breaks or tabs';
  return value.startsWith(' ') || value.endsWith(' ')
    ? 'the value of a header neither begins nor ends with a space'
    : null;
}

function refuse(name: string | null, rule: string): HeadersJudgement {
  return {
    ok: false,
    name: name?.slice(0, maxHeaderNameLength) ?? null,
    rule: `${rule}; an accepted example is ${example}`,
  };
}

const sensitiveName = /auth|bearer|cookie|cred|jwt|key|pass|pwd|secret|session|sign|token/i;
const sensitiveValue = /^(?:basic|bearer|digest|token) /i;

/** May the value of this header be a credential? Guesses, and rather once too often. */
export function isSensitiveHeader(name: string): boolean {
  return sensitiveName.test(name);
}

export const headerMask = '***';

/** The headers as they may be shown: the value of each that may be a credential is `***`. */
export function maskHeaders(headers: CustomHeaders): CustomHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      isSensitiveHeader(name) || sensitiveValue.test(value) ? headerMask : value,
    ]),
  );
}
