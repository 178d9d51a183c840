import type { FastifyReply } from 'fastify';

/** The header of answers about one endpoint, for their documentation. */
export const etagHeader = {
  ETag: {
    description: 'The version of the settings, for `If-Match`.',
    schema: { type: 'string' as const, example: '"1"' },
  },
};

/** Answers an endpoint with the version of its settings. */
export function withETag<T>(reply: FastifyReply, { endpoint, etag }: { endpoint: T; etag: string }): T {
  void reply.header('ETag', etag);
  return endpoint;
}
