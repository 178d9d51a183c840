import { Injectable } from '@nestjs/common';
import { EndpointSecretStore, maxLiveSecrets } from '../../database/endpoint-secret-store.js';
import { SecretBox, SecretBoxError } from '../../security/secret-box.js';
import { generateSigningKey, readSigningKey } from '../../security/signing-key.js';
import { generateSecret } from '../../security/signing-secret.js';
import { type SecretType, signingKeyPrefix } from '../../domain/signing-secret.js';
import { TemporalAnnouncer } from '../../temporal/announcer.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { defaultOverlapMs, type RotationBody, toSecret } from './endpoint-secrets.dto.js';
import { toWebhookKey } from './webhook-keys.dto.js';

@Injectable()
export class EndpointSecretsService {
  constructor(
    private readonly store: EndpointSecretStore,
    private readonly box: SecretBox,
    private readonly announcer: TemporalAnnouncer,
  ) {}

  async list(tenantId: string, endpointId: string) {
    const rows = await this.store.list(tenantId, endpointId);
    if (!rows) throw notFound('endpoint', endpointId);
    return { data: rows.map(toSecret) };
  }

  async rotate(tenantId: string, endpointId: string, body: RotationBody) {
    let secret = body?.secret ?? null;
    const given = secret === null ? null : secret.startsWith(signingKeyPrefix) ? 'ed25519' : 'hmac';
    if (given !== null && body?.type && body.type !== given)
      throw new Problem(422, 'invalid_field', `secret is not of the type ${body.type}`, { field: 'secret' });
    const result = await this.store.rotate(tenantId, endpointId, {
      type: given ?? body?.type ?? null,
      overlapMs: body?.overlap_ms ?? defaultOverlapMs,
      make: (type) => {
        const made = secret ?? generate(type);
        secret = made;
        return {
          sealed: this.box.seal(made, endpointId),
          publicKey: readSigningKey(made)?.publicKey ?? null,
          isSame: (sealed) => this.openOrNull(sealed, endpointId) === made,
        };
      },
    });
    if (!result) throw notFound('endpoint', endpointId);
    switch (result.kind) {
      case 'known_secret':
        throw new Problem(
          422,
          'invalid_field',
          'secret signs for this endpoint already: bring another one along, or leave it out to get a new one',
          { field: 'secret' },
        );
      case 'too_many_secrets':
        throw new Problem(
          409,
          'too_many_secrets',
          `An endpoint has at most ${maxLiveSecrets} live secrets: end an old one first, with DELETE …/secrets/{secret_id}`,
        );
      case 'rotated':
        if (result.healthChanged) void this.announcer.endpointChanged(endpointId);
        // Nobody needs the private key but Posthorn.
        return { ...toSecret(result.secret), secret: result.secret.type === 'hmac' ? secret : null };
    }
  }

  async publicKeys(endpointId: string) {
    const rows = await this.store.publicKeys(endpointId);
    if (rows.length === 0)
      throw new Problem(404, 'not_found', 'There is no such endpoint, or it signs with no Ed25519 key');
    return { keys: rows.map(toWebhookKey) };
  }

  async end(tenantId: string, endpointId: string, id: string): Promise<void> {
    const result = await this.store.end(tenantId, endpointId, id);
    if (result === null) throw notFound('endpoint', endpointId);
    if (result === 'unknown') throw notFound('secret', id);
    if (result === 'current') {
      throw new Problem(
        409,
        'secret_in_use',
        'This is the current secret: rotate first, with POST …/secrets, where overlap_ms 0 ends it at once',
      );
    }
  }

  /** One that no key opens can't be compared. */
  private openOrNull(sealed: string, endpointId: string): string | null {
    try {
      return this.box.open(sealed, endpointId);
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  }
}

function generate(type: SecretType): string {
  return type === 'hmac' ? generateSecret() : generateSigningKey().secret;
}
