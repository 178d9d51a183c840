import type { AttemptRecord } from './attempt-rows.js';

/** Postgres text can't hold NUL: what an endpoint sent must never break recording it. */
export function asText(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD');
}

export const wholeMs = (ms: number): number => Math.max(0, Math.round(ms));

export const headersText = ({ responseHeaders }: AttemptRecord): string | null =>
  responseHeaders.length > 0 ? asText(JSON.stringify(responseHeaders)) : null;
