/** One key of the ring: its id is stored beside what it encrypted. */
export interface EncryptionKey {
  readonly id: string;
  /** 32 bytes, for AES-256-GCM. */
  readonly key: Buffer;
}

/**
 * Reads `id:base64,id:base64`: the first key encrypts, all of them decrypt.
 * @throws {Error} that never repeats key material.
 */
export function parseKeyRing(text: string): readonly [EncryptionKey, ...EncryptionKey[]] {
  const keys = text.split(',').map((entry, index): EncryptionKey => {
    const [id, encoded, ...rest] = entry.trim().split(':');
    if (!id || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || encoded === undefined || rest.length > 0) {
      throw new Error(
        `entry ${index + 1} is not id:key, where id is 1 – 32 of [A-Za-z0-9_-] and key is 32 bytes in base64`,
      );
    }
    const key = Buffer.from(encoded, 'base64');
    if (key.length !== 32 || key.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, '')) {
      throw new Error(`the key '${id}' is not 32 bytes in base64; make one with: openssl rand -base64 32`);
    }
    return { id, key };
  });
  const [first, ...others] = keys;
  if (!first) throw new Error('names no key');
  if (new Set(keys.map(({ id }) => id)).size !== keys.length) throw new Error('names a key id twice');
  return [first, ...others];
}
