import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { defaultTenantId } from '../../domain/ids.js';
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

function accessOf(context: ExecutionContext): Access {
  const { access } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!access) throw new Error('this route has no access guard');
  return access;
}
