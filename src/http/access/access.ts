import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { defaultTenantId, tenantIdPattern } from '../../domain/ids.js';
import { Problem } from '../problems/problem.js';

/** Who asks: known from the API key. */
export interface Access {
  readonly keyId: string;
  /** Null: a service key, which acts for every tenant. */
  readonly tenantId: string | null;
}

export type AuthenticatedRequest = FastifyRequest & { access?: Access };

/** The tenant that a request acts for: the key's own, or, for a service key, the one that it names. */
export function tenantOf(access: Access, named: string | null | undefined): string {
  if (named === null || named === undefined) return access.tenantId ?? defaultTenantId;
  if (access.tenantId !== null && access.tenantId !== named) {
    throw new Problem(403, 'tenant_forbidden', 'This API key acts for its own tenant only: leave tenant_id out', {
      field: 'tenant_id',
    });
  }
  return named;
}

export const CurrentAccess = createParamDecorator((_: unknown, context: ExecutionContext): Access => accessOf(context));

/** The tenant of a request without a body: from the key, or `?tenant_id=` with a service key. */
export const CurrentTenant = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
  const named = (request.query as { tenant_id?: unknown }).tenant_id;
  if (named !== undefined && (typeof named !== 'string' || !tenantIdPattern.test(named))) {
    throw new Problem(422, 'invalid_field', 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -', {
      field: 'tenant_id',
    });
  }
  return tenantOf(accessOf(context), named);
});

function accessOf(context: ExecutionContext): Access {
  const { access } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!access) throw new Error('this route has no access guard');
  return access;
}
