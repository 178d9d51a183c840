import type { Config } from '../config/config.js';

/** Where the Temporal Web UI shows a workflow. */
export class WorkflowLinks {
  readonly #base: string | null;

  constructor({ uiUrl, address, embeddedUiPort, namespace }: Config['temporal']) {
    // Without an address the embedded server runs, with its own UI.
    const ui = uiUrl ?? (address === null ? `http://127.0.0.1:${embeddedUiPort}` : null);
    this.#base = ui && `${ui.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(namespace)}/workflows/`;
  }

  /** The workflow's latest run; null where nobody told the UI's address. */
  urlOf(workflowId: string): string | null {
    return this.#base && this.#base + encodeURIComponent(workflowId);
  }
}
