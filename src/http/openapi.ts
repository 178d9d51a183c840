import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { z } from 'zod';
import { version } from '../version.js';
import { referredComponents, toOpenApi } from './openapi-schemas.js';

const description = `Posthorn sends webhooks: a service publishes an event, and every endpoint that subscribed to its type gets it, signed, and
again until it accepts.

- Every call under \`/v1\` needs \`Authorization: Bearer <API key>\`. A tenant's key acts for that tenant; a service key acts for every
  tenant, which it names by \`tenant_id\`, in the body or the query.
- Errors are problem details (RFC 9457, \`application/problem+json\`) with a stable \`code\`, the \`field\` at fault, and a \`detail\` that
  says what would be right.
- Lists are pages, newest first: follow \`next_cursor\` until it is null.
- Times are RFC 3339, UTC, with milliseconds. Names carry their units: \`timeout_ms\`.`;

/** The document of a REST API that is set up; in a stable order, so that a change shows as a small difference. */
export function createOpenApi(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setTitle('Posthorn')
    .setDescription(description)
    .setVersion(version)
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addTag('events', 'What happened, as published by your services.')
    .addTag('endpoints', 'Who wants to know: a URL, the event types it wants, its secret and settings.')
    .addTag('deliveries', 'One event on its way to one endpoint, with its attempts.')
    .addTag('dead letters', 'Deliveries that were given up, until somebody has dealt with them.')
    .addTag('replays', 'Many deliveries sent again, as one job.')
    .addTag('event types', 'The catalogue: what there is to subscribe to, in which versions.')
    .addTag('notices', 'What owners of endpoints were told, by mail, by event and here.')
    .addTag('stats', 'How deliveries go: rates, latencies, and what waits.')
    .addTag('health', 'For load balancers and orchestrators; open to everybody.')
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'An API key.' });
  const document = SwaggerModule.createDocument(app, builder.build(), {
    operationIdFactory: (controller, method) => `${controller.replace(/Controller$/, '').toLowerCase()}_${method}`,
    standardSchemaConverter: (schema, { schemaType }) => {
      const { schema: converted, components } = toOpenApi(schema as z.ZodType, schemaType);
      return { schema: converted, components };
    },
  });
  const schemas = Object.entries({ ...document.components?.schemas, ...referredComponents() });
  schemas.sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...document, components: { ...document.components, schemas: Object.fromEntries(schemas) as never } };
}
