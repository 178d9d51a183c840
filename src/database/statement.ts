/** The conditions and values of a statement that is put together; columns and comparisons are ours, never a caller's text. */
export class Conditions {
  readonly #texts: string[] = [];
  readonly values: unknown[] = [];

  /** `text` has `?` where the value belongs; without a value there is no condition. */
  add(text: string, value: unknown): this {
    if (value !== undefined) this.#texts.push(`and ${text.replaceAll('?', `$${this.values.push(value)}`)}`);
    return this;
  }

  /** Their texts, each beginning with `and`. */
  toString(): string {
    return this.#texts.join(' ');
  }
}
