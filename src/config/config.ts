import { join } from 'node:path';
import { z } from 'zod';
import { parseDurationMs } from './duration.js';
import { parseProxyUrl } from './proxy-url.js';
import { parseKeyRing } from './key-ring.js';
import { parseCidr } from './cidr.js';

/** Which process reads the configuration: a process that brings its own engines needs fewer keys. */
export type ProcessKind = 'standalone' | 'api' | 'worker';

/** Names all that is missing or bad at once, so that one look repairs it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly string[]) {
    super(
      `The configuration has ${problems.length} problem${problems.length === 1 ? '' : 's'}:\n${problems.map((p) => `  - ${p}`).join('\n')}`,
    );
  }
}

const port = z.coerce.number().int().min(1).max(65_535);
const flag = z
  .enum(['on', 'off', 'true', 'false', '1', '0'])
  .transform((text) => text === 'on' || text === 'true' || text === '1');
const count = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

/** A transform that turns a parser's exception into an issue that names the key. */
function parsed<T>(parse: (text: string) => T) {
  return z.string().transform((text, context) => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
      return z.NEVER;
    }
  });
}

const list = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

const hour = 3_600_000;
const day = 24 * hour;
const kept = (leastMs: number) =>
  parsed(parseDurationMs)
    .refine(
      (ms) => ms >= leastMs && ms <= 3_650 * day,
      `must be ${leastMs >= day ? `${leastMs / day}d` : '1h'} – 3650d`,
    )
    .optional();

/** Every environment variable that Posthorn reads; docs/reference/configuration.md has a row for each. */
const variables = {
  POSTHORN_HTTP_HOST: z.string().min(1).optional(),
  POSTHORN_HTTP_PORT: port.default(8400),
  POSTHORN_HTTP_BODY_LIMIT_BYTES: count(1_024, 64 * 1024 * 1024).default(256 * 1024),
  POSTHORN_HTTP_BATCH_LIMIT_BYTES: count(1_024, 64 * 1024 * 1024).default(8 * 1024 * 1024),
  POSTHORN_HTTP_BATCH_LIMIT_EVENTS: count(1, 10_000).default(1_000),
  POSTHORN_PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  POSTHORN_PUBLIC_HOST: z
    .string()
    .regex(/^[A-Za-z0-9.-]{1,253}$/, 'must be a host name such as posthorn.example.com')
    .optional(),
  POSTHORN_DATA_DIR: z.string().min(1).default('.posthorn'),
  POSTHORN_DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a URL that starts with postgres://')
    .optional(),
  POSTHORN_DATABASE_POOL_SIZE: count(2, 500).default(20),
  POSTHORN_POSTGRES_PORT: port.default(8405),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/]+:\d{1,5}$/, 'must be host:port')
    .optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).optional(),
  TEMPORAL_CLI_PATH: z.string().min(1).optional(),
  POSTHORN_TEMPORAL_PORT: port.default(8433),
  POSTHORN_TEMPORAL_UI_PORT: port.default(8434),
  POSTHORN_TEMPORAL_UI_URL: z.url({ protocol: /^https?$/ }).optional(),
  POSTHORN_BOOTSTRAP_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{24,200}$/, 'must be 24 – 200 printable ASCII characters without spaces')
    .optional(),
  POSTHORN_ENCRYPTION_KEYS: parsed(parseKeyRing).optional(),
  POSTHORN_DELIVERY_RETRY_WAITS: parsed((text) => list(text).map(parseDurationMs))
    .refine((waits) => waits.length >= 1 && waits.length <= 20, 'must name 1 – 20 waits, such as 1m,5m,30m')
    .optional(),
  POSTHORN_DELIVERY_REFUSED_WAIT: parsed(parseDurationMs).optional(),
  POSTHORN_DELIVERY_ALLOW_HTTP: z.enum(['on', 'off', 'true', 'false', 'loopback']).optional(),
  POSTHORN_DELIVERY_ALLOWED_CIDRS: parsed((text) => list(text).map(parseCidr)).optional(),
  POSTHORN_DELIVERY_MAX_CONCURRENT_ATTEMPTS: count(1, 10_000).default(200),
  POSTHORN_DELIVERY_MAX_IN_FLIGHT: count(1, 10_000).default(64),
  POSTHORN_DELIVERY_FIRST_ATTEMPT: z.enum(['workflow', 'express']).default('workflow'),
  POSTHORN_DELIVERY_EXPRESS_QUEUE: count(1, 1_000_000).default(20_000),
  POSTHORN_DELIVERY_RETRY_SHARE_PERCENT: count(1, 100).default(50),
  POSTHORN_DELIVERY_QUEUE_AGE: parsed(parseDurationMs)
    .refine((ms) => ms >= 1_000, 'must be at least 1s')
    .default(86_400_000),
  POSTHORN_HEALTH_BACKLOG_SIZE: count(1, 1_000_000).default(100),
  POSTHORN_HEALTH_BACKLOG_WINDOW: parsed(parseDurationMs)
    .refine((ms) => ms >= 60_000, 'must be at least 1m')
    .default(3_600_000),
  POSTHORN_DELIVERY_CA_FILE: z.string().min(1).optional(),
  POSTHORN_DELIVERY_PROXY_URL: parsed(parseProxyUrl).optional(),
  POSTHORN_DELIVERY_PROXY_RESOLVES: flag.optional(),
  POSTHORN_VERIFICATION_REQUIRED: flag.default(true),
  POSTHORN_VERIFICATION_EVENTS: z.enum(['hold', 'drop']).default('hold'),
  POSTHORN_VERIFICATION_EXPIRY: parsed(parseDurationMs)
    .refine((ms) => ms >= 60_000 && ms <= 30 * 86_400_000, 'must be 1m – 30d')
    .default(72 * 3_600_000),
  POSTHORN_CATALOGUE_REQUIRED: flag.default(false),
  POSTHORN_CATALOGUE_PAGE: flag.default(false),
  POSTHORN_CATALOGUE_MAX_BYTES: count(1_024, 8 * 1024 * 1024).default(2 * 1024 * 1024),
  POSTHORN_CATALOGUE_MAX_SCHEMA_BYTES: count(256, 1024 * 1024).default(64 * 1024),
  POSTHORN_CATALOGUE_TIMEOUT: parsed(parseDurationMs)
    .refine((ms) => ms >= 10 && ms <= 10_000, 'must be 10ms – 10s')
    .default(1_000),
  POSTHORN_DELIVERY_LETTER_EXPIRY: parsed(parseDurationMs)
    .refine((ms) => ms >= 30 * 86_400_000, 'must be at least 30d: a letter is kept for 30 days or more')
    .default(90 * 86_400_000),
  POSTHORN_DELIVERY_ALERT_WINDOW: parsed(parseDurationMs).default(60_000),
  POSTHORN_HEALTH_WARN_AFTER: parsed((text) => list(text).map(parseDurationMs))
    .refine(
      (waits) => waits.length >= 1 && waits.length <= 10 && waits.every((ms) => ms > 0),
      'must name 1 – 10 times, such as 24h,72h',
    )
    .default([24 * 3_600_000, 72 * 3_600_000]),
  POSTHORN_HEALTH_DISABLE_AFTER: parsed(parseDurationMs)
    .refine((ms) => ms >= 1_000 && ms <= 365 * 86_400_000, 'must be 1s – 365d')
    .default(7 * 86_400_000),
  POSTHORN_HEALTH_EXPIRY_NOTICE: parsed(parseDurationMs)
    .refine((ms) => ms >= 7 * 86_400_000 && ms <= 365 * 86_400_000, 'must be 7d – 365d')
    .default(7 * 86_400_000),
  POSTHORN_HEALTH_AUTO_ENABLE: flag.default(true),
  POSTHORN_REPLAY_MAX_ITEMS: count(1, 1_000_000).default(100_000),
  POSTHORN_REPLAY_RATE: count(1, 1_000).default(20),
  POSTHORN_MAIL_SMTP_URL: z
    .string()
    .refine(
      (text) => /^smtps?:\/\/[^/]/.test(text) && URL.canParse(text),
      'must be a URL such as smtp://user:password@mail.example.com:587',
    )
    .optional(),
  POSTHORN_MAIL_FROM: z
    .string()
    .regex(
      /^[^\r\n<>]*<?[^\s<>@]+@[A-Za-z0-9.-]+>?$/,
      'must be an address such as posthorn@example.com or Posthorn <posthorn@example.com>',
    )
    .optional(),
  POSTHORN_MAIL_DIR: z.string().min(1).optional(),
  POSTHORN_RETENTION_PAYLOADS: kept(hour),
  POSTHORN_RETENTION_ATTEMPTS: kept(2 * day),
  POSTHORN_RETENTION_DELIVERIES: kept(2 * day),
  POSTHORN_RETENTION_EVENTS: kept(2 * day),
  POSTHORN_RETENTION_NOTICES: kept(2 * day),
  POSTHORN_TEMPORAL_WORKFLOW_TASK_TIMEOUT: parsed(parseDurationMs)
    .refine((ms) => ms >= 1_000 && ms <= 120_000, 'must be 1s – 120s')
    .optional(),
  POSTHORN_SAMPLE_RECEIVER: flag.default(true),
  POSTHORN_SAMPLE_RECEIVER_PORT: port.default(8410),
  POSTHORN_METRICS: flag.default(true),
  POSTHORN_METRICS_PORT: port.optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_SERVICE_NAME: z.string().min(1).default('posthorn'),
  POSTHORN_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
} as const;

const schema = z.object(variables);
/** Read by clients of ours that share an environment with the server. */
const clientVariables = ['POSTHORN_API_KEY', 'POSTHORN_API_URL'];
export const configurationKeys = Object.keys(variables);

const required: Record<ProcessKind, readonly (keyof typeof variables)[]> = {
  standalone: [],
  api: ['POSTHORN_DATABASE_URL', 'TEMPORAL_ADDRESS', 'POSTHORN_ENCRYPTION_KEYS'],
  worker: ['POSTHORN_DATABASE_URL', 'TEMPORAL_ADDRESS', 'POSTHORN_ENCRYPTION_KEYS'],
};

/** What a missing key is for, so that the message says what to do. */
const hints: Partial<Record<keyof typeof variables, string>> = {
  POSTHORN_DATABASE_URL: 'postgres://user:password@host:5432/posthorn',
  TEMPORAL_ADDRESS: 'host:7233 of the Temporal frontend',
  POSTHORN_ENCRYPTION_KEYS:
    "id:key of 32 random bytes in base64, such as k1:$(openssl rand -base64 32); secrets can't be kept without it",
};

export type Config = ReturnType<typeof loadConfig>;

/**
 * Reads and validates the whole configuration.
 * @throws {ConfigError} naming every missing or bad key.
 */
export function loadConfig(kind: ProcessKind, env: NodeJS.ProcessEnv = process.env) {
  const given = Object.fromEntries(
    configurationKeys.filter((key) => (env[key] ?? '') !== '').map((key) => [key, env[key]]),
  );
  const result = schema.safeParse(given);
  const problems = result.success
    ? []
    : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  for (const key of required[kind]) {
    if (given[key] === undefined) problems.push(`${key} is not set: ${hints[key]}`);
  }
  for (const key of Object.keys(env)) {
    if (key.startsWith('POSTHORN_') && ![...configurationKeys, ...clientVariables].includes(key))
      problems.push(
        `${key} is not a setting of Posthorn: correct or unset it (docs/reference/configuration.md lists them all)`,
      );
  }
  if (given['POSTHORN_DELIVERY_PROXY_RESOLVES'] !== undefined && given['POSTHORN_DELIVERY_PROXY_URL'] === undefined)
    problems.push(
      'POSTHORN_DELIVERY_PROXY_RESOLVES: says something about POSTHORN_DELIVERY_PROXY_URL, which is not set',
    );
  const retention = result.success ? retentionOf(result.data, problems) : null;
  if (!result.success || !retention || problems.length > 0) throw new ConfigError(problems);
  const v = result.data;
  // The embedded default lets a newcomer try it against their own machine; elsewhere https and public addresses only.
  const embedded = kind === 'standalone';
  const loopback = ['127.0.0.0/8', '::1/128'].map(parseCidr);
  const allowHttp = v.POSTHORN_DELIVERY_ALLOW_HTTP ?? (embedded ? 'loopback' : 'off');
  const publicUrl = v.POSTHORN_PUBLIC_URL ?? (embedded ? `http://127.0.0.1:${v.POSTHORN_HTTP_PORT}` : null);
  const publicHost = v.POSTHORN_PUBLIC_HOST ?? (publicUrl === null ? 'localhost' : new URL(publicUrl).hostname);
  return {
    kind,
    http: {
      host: v.POSTHORN_HTTP_HOST ?? (embedded ? '127.0.0.1' : '0.0.0.0'),
      port: v.POSTHORN_HTTP_PORT,
      bodyLimitBytes: v.POSTHORN_HTTP_BODY_LIMIT_BYTES,
      batchLimitBytes: v.POSTHORN_HTTP_BATCH_LIMIT_BYTES,
      batchLimitEvents: v.POSTHORN_HTTP_BATCH_LIMIT_EVENTS,
    },
    /** Where consumers reach this API, without a final slash; null where they can't. */
    publicUrl: publicUrl?.replace(/\/+$/, '') ?? null,
    /** Who we say we are in a handshake. */
    publicHost,
    dataDir: v.POSTHORN_DATA_DIR,
    database: {
      url: v.POSTHORN_DATABASE_URL ?? null,
      poolSize: v.POSTHORN_DATABASE_POOL_SIZE,
      embeddedPort: v.POSTHORN_POSTGRES_PORT,
    },
    temporal: {
      /** Set: an existing cluster. Null: the embedded one. */
      address: v.TEMPORAL_ADDRESS ?? null,
      namespace: v.TEMPORAL_NAMESPACE ?? 'default',
      cliPath: v.TEMPORAL_CLI_PATH ?? null,
      embeddedPort: v.POSTHORN_TEMPORAL_PORT,
      embeddedUiPort: v.POSTHORN_TEMPORAL_UI_PORT,
      uiUrl: v.POSTHORN_TEMPORAL_UI_URL ?? null,
    },
    bootstrapApiKey: v.POSTHORN_BOOTSTRAP_API_KEY ?? null,
    encryptionKeys: v.POSTHORN_ENCRYPTION_KEYS ?? null,
    delivery: {
      retryWaitsMs: v.POSTHORN_DELIVERY_RETRY_WAITS ?? null,
      // A shortened schedule is a trial: the long rest after refused credentials would get in its way.
      refusedWaitMs: v.POSTHORN_DELIVERY_REFUSED_WAIT ?? (v.POSTHORN_DELIVERY_RETRY_WAITS ? 0 : 30 * 60_000),
      allowHttp:
        allowHttp === 'on' || allowHttp === 'true'
          ? ('on' as const)
          : allowHttp === 'loopback'
            ? ('loopback' as const)
            : ('off' as const),
      allowedCidrs: v.POSTHORN_DELIVERY_ALLOWED_CIDRS ?? (embedded ? loopback : []),
      maxConcurrentAttempts: v.POSTHORN_DELIVERY_MAX_CONCURRENT_ATTEMPTS,
      /** Requests in flight to one endpoint, in one worker process, where the endpoint doesn't say. */
      maxInFlight: v.POSTHORN_DELIVERY_MAX_IN_FLIGHT,
      // A worker publishes nothing, so it makes no first attempt before there is a workflow.
      firstAttempt: kind === 'worker' ? ('workflow' as const) : v.POSTHORN_DELIVERY_FIRST_ATTEMPT,
      /** Deliveries that wait for the express lane; while so many do, those that come have workflows from the start. */
      expressQueue: v.POSTHORN_DELIVERY_EXPRESS_QUEUE,
      /** Of a rate limit: the part that retries may take. */
      retryShare: v.POSTHORN_DELIVERY_RETRY_SHARE_PERCENT / 100,
      /** What waits for its turn for longer than this is given up. */
      queueAgeMs: v.POSTHORN_DELIVERY_QUEUE_AGE,
      /** PEM certificates to trust beside the public ones. */
      caFile: v.POSTHORN_DELIVERY_CA_FILE ?? null,
      /** Through which all calls to endpoints leave; null: they leave directly. `resolves`: it looks their names up. */
      proxy: v.POSTHORN_DELIVERY_PROXY_URL
        ? { ...v.POSTHORN_DELIVERY_PROXY_URL, resolves: v.POSTHORN_DELIVERY_PROXY_RESOLVES ?? false }
        : null,
      letterExpiryMs: v.POSTHORN_DELIVERY_LETTER_EXPIRY,
      alertWindowMs: v.POSTHORN_DELIVERY_ALERT_WINDOW,
      /** Null: the server's 10 s. After this long a killed worker's first attempts go on elsewhere. */
      workflowTaskTimeoutMs: v.POSTHORN_TEMPORAL_WORKFLOW_TASK_TIMEOUT,
    },
    /** A backlog that grows is told to its owner: from this size on, once a window. */
    backlog: { atLeast: v.POSTHORN_HEALTH_BACKLOG_SIZE, windowMs: v.POSTHORN_HEALTH_BACKLOG_WINDOW },
    verification: {
      /** Off: new endpoints are active at once. */
      required: v.POSTHORN_VERIFICATION_REQUIRED,
      /** What becomes of events for an endpoint that isn't verified yet. */
      events: v.POSTHORN_VERIFICATION_EVENTS,
      expiryMs: v.POSTHORN_VERIFICATION_EXPIRY,
    },
    catalogue: {
      /** Only events of registered types are accepted. */
      required: v.POSTHORN_CATALOGUE_REQUIRED,
      /** Whether everybody may read the page of a tenant's event types. */
      page: v.POSTHORN_CATALOGUE_PAGE,
      /** Of all event types of a tenant. */
      maxBytes: v.POSTHORN_CATALOGUE_MAX_BYTES,
      maxSchemaBytes: v.POSTHORN_CATALOGUE_MAX_SCHEMA_BYTES,
      /** For one schema or conversion, on one event. */
      timeoutMs: v.POSTHORN_CATALOGUE_TIMEOUT,
    },
    health: {
      /** The owner is told of so many milliseconds without one success. */
      warnAfterMs: v.POSTHORN_HEALTH_WARN_AFTER,
      disableAfterMs: v.POSTHORN_HEALTH_DISABLE_AFTER,
      expiryNoticeMs: v.POSTHORN_HEALTH_EXPIRY_NOTICE,
      autoEnable: v.POSTHORN_HEALTH_AUTO_ENABLE,
    },
    replay: {
      /** Deliveries of one bulk replay, at most. */
      maxItems: v.POSTHORN_REPLAY_MAX_ITEMS,
      /** Started a second, where the request doesn't say. */
      ratePerSecond: v.POSTHORN_REPLAY_RATE,
    },
    /** How long things are kept. */
    retention,
    mail: {
      /** Holds a password: never shown. */
      smtpUrl: v.POSTHORN_MAIL_SMTP_URL ?? null,
      from: v.POSTHORN_MAIL_FROM ?? `Posthorn <posthorn@${publicHost}>`,
      /** Without a server, mails are written there; null: there is no mail. */
      dir: v.POSTHORN_MAIL_DIR ?? (embedded ? join(v.POSTHORN_DATA_DIR, 'mail') : null),
    },
    sampleReceiver: { enabled: v.POSTHORN_SAMPLE_RECEIVER, port: v.POSTHORN_SAMPLE_RECEIVER_PORT },
    metrics: {
      /** Whether the API answers /metrics. */
      enabled: v.POSTHORN_METRICS,
      /** Where a worker process answers it; null: it doesn't. */
      port: v.POSTHORN_METRICS_PORT ?? null,
    },
    tracing: {
      /** Where spans are sent to; null: nothing is traced. */
      url:
        v.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ??
        (v.OTEL_EXPORTER_OTLP_ENDPOINT && `${v.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/, '')}/v1/traces`) ??
        null,
      serviceName: v.OTEL_SERVICE_NAME,
    },
    logLevel: v.POSTHORN_LOG_LEVEL,
  };
}

/** Nothing is kept without what it belongs to: a default gives way, a setting is refused. */
function retentionOf(v: z.infer<typeof schema>, problems: string[]) {
  const deliveriesMs = v.POSTHORN_RETENTION_DELIVERIES ?? 90 * day;
  const attemptsMs = v.POSTHORN_RETENTION_ATTEMPTS ?? Math.min(90 * day, deliveriesMs);
  const eventsMs = v.POSTHORN_RETENTION_EVENTS ?? Math.max(90 * day, deliveriesMs);
  const payloadsMs = v.POSTHORN_RETENTION_PAYLOADS ?? Math.min(30 * day, eventsMs);
  const within = (shorter: [string, number], longer: [string, number]): void => {
    if (shorter[1] > longer[1])
      problems.push(`POSTHORN_RETENTION_${shorter[0]}: must not be longer than POSTHORN_RETENTION_${longer[0]}`);
  };
  within(['ATTEMPTS', attemptsMs], ['DELIVERIES', deliveriesMs]);
  within(['DELIVERIES', deliveriesMs], ['EVENTS', eventsMs]);
  within(['PAYLOADS', payloadsMs], ['EVENTS', eventsMs]);
  const noticesMs = v.POSTHORN_RETENTION_NOTICES ?? 90 * day;
  return { payloadsMs, attemptsMs, deliveriesMs, eventsMs, noticesMs };
}
