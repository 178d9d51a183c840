import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { EncryptionKey } from '../config/key-ring.js';

const algorithm = 'aes-256-gcm';
const version = 'v1';
const nonceBytes = 12;
const tagBytes = 16;

/** Why a sealed text could not be opened. The message never holds key material or plain text. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
  constructor(
    readonly code: 'malformed' | 'unknown_key' | 'not_authentic',
    message: string,
  ) {
    super(message);
  }
}

/**
 * Encrypts secrets at rest: AES-256-GCM, `v1.<key id>.<base64url of nonce, ciphertext, tag>`. The key ring's first key seals, each
 * of them opens. The context (what the secret is for, such as an endpoint's id) is authenticated, so that a sealed text moved to
 * another row doesn't open there.
 */
export class SecretBox {
  readonly #sealing: EncryptionKey;
  readonly #keys: ReadonlyMap<string, Buffer>;

  constructor(ring: readonly [EncryptionKey, ...EncryptionKey[]]) {
    this.#sealing = ring[0];
    this.#keys = new Map(ring.map(({ id, key }) => [id, key]));
  }

  seal(plain: string, context: string): string {
    const nonce = randomBytes(nonceBytes);
    const { id, key } = this.#sealing;
    const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(additionalData(id, context));
    const parts = [nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()];
    return `${version}.${id}.${Buffer.concat(parts).toString('base64url')}`;
  }

  /** @throws {SecretBoxError} */
  open(sealed: string, context: string): string {
    const match = /^v1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)$/.exec(sealed);
    const bytes = Buffer.from(match?.[2] ?? '', 'base64url');
    const id = match?.[1];
    // Decoding skips what isn't base64url; only the one canonical text is accepted.
    const canonical = bytes.toString('base64url') === match?.[2];
    if (id === undefined || !canonical || bytes.length < nonceBytes + tagBytes) {
      throw new SecretBoxError('malformed', 'The sealed secret does not have the form v1.<key id>.<base64url>');
    }
    const key = this.#keys.get(id);
    if (!key) {
      throw new SecretBoxError(
        'unknown_key',
        `The secret was sealed with the key '${id}', which is not in the key ring`,
      );
    }
    const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
    decipher.setAAD(additionalData(id, context));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    try {
      const plain = [decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()];
      return Buffer.concat(plain).toString('utf8');
    } catch {
      throw new SecretBoxError(
        'not_authentic',
        `The sealed secret was altered, moved, or sealed with another key '${id}'`,
      );
    }
  }
}

function additionalData(keyId: string, context: string): Buffer {
  return Buffer.from(`${version}.${keyId}.${context}`, 'utf8');
}
