import type { Config } from '../config/config.js';
import type { PortWish } from './ports.js';

/** Every port that `npm start` listens on with this configuration. */
export function embeddedPortWishes(config: Config): readonly PortWish[] {
  const { http, database, temporal, sampleReceiver } = config;
  return [
    { port: http.port, host: http.host, wantedBy: 'the API', variable: 'POSTHORN_HTTP_PORT' },
    ...(database.url === null
      ? [{ port: database.embeddedPort, wantedBy: 'Postgres', variable: 'POSTHORN_POSTGRES_PORT' }]
      : []),
    ...(temporal.address === null
      ? [
          { port: temporal.embeddedPort, wantedBy: 'Temporal', variable: 'POSTHORN_TEMPORAL_PORT' },
          { port: temporal.embeddedUiPort, wantedBy: 'the Temporal Web UI', variable: 'POSTHORN_TEMPORAL_UI_PORT' },
        ]
      : []),
    ...(sampleReceiver.enabled
      ? [{ port: sampleReceiver.port, wantedBy: 'the sample receiver', variable: 'POSTHORN_SAMPLE_RECEIVER_PORT' }]
      : []),
  ];
}
