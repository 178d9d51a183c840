/** The parts of a `traceparent` (W3C Trace Context, section 3.2). */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits: the span that asks. */
  readonly parentId: string;
  readonly sampled: boolean;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Null for what isn't one: as if it hadn't been given. A later version is read as far as ours goes (section 4.3). */
export function parseTraceparent(text: string | null | undefined): TraceParent | null {
  const [, version, traceId, parentId, flags, more] = form.exec(text ?? '') ?? [];
  if (!version || !traceId || !parentId || !flags) return null;
  if (version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return null;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, parentId, sampled }: TraceParent): string {
  return `00-${traceId}-${parentId}-${sampled ? '01' : '00'}`;
}
