import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiKeyStore } from '../../database/api-key-store.js';
import { hashApiKey } from '../../security/api-key.js';
import { Problem } from '../problems/problem.js';
import type { Access, AuthenticatedRequest } from './access.js';

/** Open to everybody: health and documentation. */
export const Public = (): MethodDecorator & ClassDecorator => SetMetadata('posthorn:public', true);

/** A revoked key works for at most this long in a process that has just seen it. */
const cacheMs = 5_000;
const cacheLimit = 1_000;

/** `Authorization: Bearer <API key>` on everything that isn't {@link Public}. */
@Injectable()
export class AccessGuard implements CanActivate {
  private readonly known = new Map<string, { access: Access; until: number }>();

  constructor(
    private readonly reflector: Reflector,
    private readonly keys: ApiKeyStore,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.reflector.getAllAndOverride('posthorn:public', [context.getHandler(), context.getClass()])) return true;
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    request.access = await this.authenticate(request.headers.authorization);
    return true;
  }

  private async authenticate(header: string | undefined): Promise<Access> {
    const [, key] = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header ?? '') ?? [];
    if (!key) throw unauthorized('Send the header Authorization: Bearer <API key>');
    const hash = hashApiKey(key);
    const name = hash.toString('base64');
    const cached = this.known.get(name);
    if (cached && cached.until > Date.now()) return cached.access;
    const row = await this.keys.findByHash(hash);
    if (!row) throw unauthorized('This API key is not known, or was revoked');
    const access = { keyId: row.id, tenantId: row.tenant_id };
    if (this.known.size >= cacheLimit) this.known.clear();
    this.known.set(name, { access, until: Date.now() + cacheMs });
    return access;
  }
}

function unauthorized(detail: string): Problem {
  return new Problem(401, 'unauthorized', detail, {
    field: 'Authorization',
    headers: { 'WWW-Authenticate': 'Bearer realm="posthorn"' },
  });
}
