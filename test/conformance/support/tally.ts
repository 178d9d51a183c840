/** Counts what each verifier did, for the summary at the end and to see that nothing was left out. */
export class Tally {
  readonly #counts = new Map<string, { accepted: number; refused: number }>();

  count(refusals: Readonly<Record<string, string | null>>): void {
    for (const [name, refusal] of Object.entries(refusals)) {
      const counts = this.of(name);
      if (refusal === null) counts.accepted += 1;
      else counts.refused += 1;
      this.#counts.set(name, counts);
    }
  }

  of(name: string): { accepted: number; refused: number } {
    return this.#counts.get(name) ?? { accepted: 0, refused: 0 };
  }

  toString(): string {
    return [...this.#counts]
      .map(([name, { accepted, refused }]) => {
        return `  ${name.padEnd(24)} accepted ${String(accepted).padStart(6)}   refused when tampered with ${String(refused).padStart(5)}`;
      })
      .join('\n');
  }
}
