/** Bytes that may precede the final answer: an endpoint that floods us with 1xx answers would cost a core until the deadline. */
const maxInterimBytes = 1024 * 1024;
const statusLine = /^HTTP\/1\.[01] ([1-5]\d\d)[ \r\n]/;
const statusLineLength = 'HTTP/1.1 200 '.length;

/**
 * Watches the bytes that a socket hands to undici, for three things undici doesn't tell: whether any byte of an answer came,
 * which status it began with even if the rest can't be parsed, and `100 Continue` answers that nothing asked for. HTTP wants
 * clients to skip the latter (RFC 9110 section 15.2) while undici treats them as an error, so they are cut out here.
 */
export class AnswerHead {
  #bytes = 0;
  #final = false;
  #skipping = false;
  #settled = false;
  #held: Buffer | null = null;
  #start: Buffer = Buffer.alloc(0);

  /** A new request goes out on the socket. */
  reset(): void {
    this.#bytes = 0;
    this.#final = false;
    this.#skipping = false;
    this.#settled = false;
    this.#held = null;
    this.#start = Buffer.alloc(0);
  }

  /** The head of the final answer is complete. */
  final(): void {
    this.#final = true;
  }

  get sawBytes(): boolean {
    return this.#bytes > 0;
  }

  get isFlood(): boolean {
    return !this.#final && this.#bytes > maxInterimBytes;
  }

  /** The status of the first line, unless it is an interim one or none. */
  get statusCode(): number | null {
    const status = Number(statusLine.exec(this.#start.toString('latin1'))?.[1] ?? 0);
    return status >= 200 ? status : null;
  }

  /** What of these bytes undici may see; null while that is undecided. */
  filter(chunk: Buffer): Buffer | null {
    this.#bytes += chunk.length;
    if (this.#settled) {
      this.#keepStart(chunk);
      return chunk;
    }
    let rest = this.#held === null ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = null;
    for (;;) {
      if (this.#skipping) {
        const end = rest.indexOf('\r\n\r\n');
        if (end < 0) return this.#hold(rest.subarray(-3));
        this.#skipping = false;
        rest = rest.subarray(end + 4);
      }
      const head = rest.toString('latin1', 0, statusLineLength);
      if (statusLine.exec(head)?.[1] === '100') this.#skipping = true;
      else if (head.length < statusLineLength && couldBecomeContinue(head)) return this.#hold(rest);
      else break;
    }
    this.#settled = true;
    this.#keepStart(rest);
    return rest;
  }

  #hold(bytes: Buffer): null {
    this.#held = Buffer.from(bytes);
    return null;
  }

  #keepStart(chunk: Buffer): void {
    const missing = statusLineLength - this.#start.length;
    if (missing > 0) this.#start = Buffer.concat([this.#start, chunk.subarray(0, missing)]);
  }
}

function couldBecomeContinue(head: string): boolean {
  return ['HTTP/1.1 100', 'HTTP/1.0 100'].some((line) => line.startsWith(head));
}
