import { BoundedMap } from '../payload/bounded-map.js';

/** Endpoints' texts that are kept open; a process that serves more opens some of them again. */
const mostKept = 5_000;

interface SealedTexts {
  open(sealed: string, context: string): string;
}

/**
 * Opens each sealed text once: it holds the same for ever, and a changed secret is another text. For whoever opens an endpoint's
 * secrets at each attempt.
 */
export class OpenedTexts implements SealedTexts {
  private readonly opened = new BoundedMap<string, string>(mostKept);

  constructor(private readonly box: SealedTexts) {}

  open(sealed: string, context: string): string {
    // No context has a space, and neither has a sealed text.
    return this.opened.getOrMake(`${context} ${sealed}`, () => this.box.open(sealed, context));
  }
}
