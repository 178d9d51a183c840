import { isUtf8 } from 'node:buffer';

/** Read at most this much of an answer's body, however much is sent. */
export const maxReadBytes = 64 * 1024;
/** Keep at most this much of it. */
export const maxStoredBytes = 16 * 1024;
export const maxStoredHeaders = 100;
export const maxStoredHeaderBytes = 16 * 1024;

/** Headers that change what we do: they are kept even where an answer has more than we store. */
const telling = new Set(['retry-after', 'content-type', 'webhook-allowed-origin']);
const maxTellingHeaders = 10;
const maxTellingBytes = 1_024;

const nothing = Buffer.alloc(0);

type Header = readonly [string, string];

/** Collects one answer in bounded memory. Any bytes are fine. */
export class AnswerReader {
  statusCode: number | null = null;
  headers: readonly Header[] = [];
  /** Something of the answer was not kept. */
  truncated = false;
  #readBytes = 0;
  #storedBytes = 0;
  #stored = nothing;

  /** @param rawHeaders names and values in turn, as undici hands them over. */
  begin(statusCode: number, rawHeaders: readonly (Buffer | string)[]): void {
    this.statusCode = statusCode;
    const { headers, cut } = boundHeaders(rawHeaders);
    this.headers = headers;
    this.truncated ||= cut;
  }

  /** Returns false once enough was read. */
  take(chunk: Buffer): boolean {
    this.#readBytes += chunk.length;
    // A copy, since a chunk of one byte would keep its whole network buffer alive.
    this.#makeRoom(this.#storedBytes + chunk.length);
    this.#storedBytes += chunk.copy(this.#stored, this.#storedBytes);
    if (this.#readBytes > maxStoredBytes) this.truncated = true;
    return this.#readBytes <= maxReadBytes;
  }

  /** Most answers are short: what is kept of them grows with them. */
  #makeRoom(bytes: number): void {
    if (bytes <= this.#stored.length || this.#stored.length === maxStoredBytes) return;
    const larger = Buffer.allocUnsafe(Math.min(maxStoredBytes, Math.max(bytes, 2 * this.#stored.length)));
    this.#stored.copy(larger, 0, 0, this.#storedBytes);
    this.#stored = larger;
  }

  get body(): Buffer {
    return Buffer.from(this.#stored.subarray(0, this.#storedBytes));
  }
}

function boundHeaders(raw: readonly (Buffer | string)[]): { headers: Header[]; cut: boolean } {
  const headers: Header[] = [];
  let bytes = 0;
  let tellingKept = 0;
  let cut = false;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = decode(raw[at]);
    const value = decode(raw[at + 1]);
    const size = name.length + value.length;
    if (headers.length - tellingKept < maxStoredHeaders && bytes + size <= maxStoredHeaderBytes) {
      headers.push([name, value]);
      bytes += size;
    } else if (telling.has(name.toLowerCase()) && size <= maxTellingBytes && tellingKept < maxTellingHeaders) {
      headers.push([name, value]);
      tellingKept += 1;
    } else {
      cut = true;
    }
  }
  return { headers, cut };
}

/** HTTP leaves the charset of headers open: UTF-8 where it is that, else every byte one character. */
function decode(bytes: Buffer | string | undefined): string {
  if (bytes === undefined || typeof bytes === 'string') return bytes ?? '';
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}
