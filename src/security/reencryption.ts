import { sealedColumns, type SealedTextStore } from '../database/sealed-text-store.js';
import { type SecretBox, SecretBoxError } from './secret-box.js';

const batchSize = 500;

export interface Reencrypted {
  readonly name: string;
  readonly done: number;
  /** Keys of the rows that no key of the ring opens, with the reason. */
  readonly failed: readonly { readonly key: string; readonly why: string }[];
}

/**
 * Seals again, with the ring's first key, whatever another key sealed. It may be stopped and repeated at any time, and runs beside
 * working processes: a text that somebody changes meanwhile stays as they left it.
 */
export async function reencrypt(store: SealedTextStore, box: SecretBox, firstKeyId: string): Promise<Reencrypted[]> {
  const results: Reencrypted[] = [];
  for (const column of sealedColumns) {
    const failed: { key: string; why: string }[] = [];
    let done = 0;
    for (let after = ''; ;) {
      const texts = await store.sealedByOthers(column, `v1.${firstKeyId}.`, after, batchSize);
      for (const text of texts) {
        try {
          const sealed = box.seal(box.open(text.sealed, text.context), text.context);
          if (await store.replace(column, text, sealed)) done += 1;
        } catch (error) {
          if (!(error instanceof SecretBoxError)) throw error;
          failed.push({ key: text.key, why: error.message });
        }
      }
      const last = texts.at(-1);
      if (!last || texts.length < batchSize) break;
      after = last.key;
    }
    results.push({ name: column.name, done, failed });
  }
  return results;
}
