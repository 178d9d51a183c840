import { Injectable } from '@nestjs/common';
import { EndpointSecretStore, maxLiveSecrets } from '../../database/endpoint-secret-store.js';
import { SecretBox, SecretBoxError } from '../../security/secret-box.js';
import { generateSecret } from '../../security/signing-secret.js';
import { TemporalAnnouncer } from '../../temporal/announcer.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { defaultOverlapMs, type RotationBody, toSecret } from './endpoint-secrets.dto.js';

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
    const secret = body?.secret ?? generateSecret();
    const result = await this.store.rotate(tenantId, endpointId, {
      sealed: this.box.seal(secret, endpointId),
      overlapMs: body?.overlap_ms ?? defaultOverlapMs,
      isSame: (sealed) => this.openOrNull(sealed, endpointId) === secret,
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
        return { ...toSecret(result.secret), secret };
    }
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
