import { z } from 'zod';
import { IdPipe } from '../../http/id.pipe.js';

/** The endpoint in the path of its routes. */
export const idParam = {
  name: 'id',
  description: 'The endpoint, `we_…`.',
  example: 'we_01KC0000000000000000000001',
} as const;
export const endpointId = new IdPipe('endpoint');

/** The body of an action that takes nothing beside its path. */
export const emptyBody = z
  .strictObject(
    {},
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send no body, or an empty JSON object: {}' : undefined) },
  )
  .nullish();
