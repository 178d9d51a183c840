import {
  type Attributes,
  type Context,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { pause } from '../pause.js';
import { version } from '../version.js';
import type { Logger } from './logger.js';
import { formatTraceparent, parseTraceparent } from './traceparent.js';
import { type AttemptEnd, type AttemptFacts, type AttemptSpan, Tracing } from './tracing.js';

export interface OtelOptions {
  /** Where spans are posted to, as OTLP in JSON. */
  readonly url: string;
  readonly serviceName: string;
  readonly log: Logger;
}

const stopPatienceMs = 3_000;
const quiet = (): void => undefined;

/** Loaded only where it is switched on: nobody else pays for it. Sets nothing global but where the SDK complains. */
export class OtelTracing extends Tracing {
  private readonly provider: NodeTracerProvider;
  private readonly tracer: Tracer;

  constructor({ url, serviceName, log }: OtelOptions) {
    super();
    const complain = (message: string): void => log.warn({ from: 'opentelemetry' }, message.slice(0, 1_000));
    diag.setLogger(
      { error: complain, warn: complain, info: quiet, debug: quiet, verbose: quiet },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
    this.provider = new NodeTracerProvider({
      resource: defaultResource()
        .merge(detectResources({ detectors: [envDetector] }))
        .merge(resourceFromAttributes({ 'service.name': serviceName, 'service.version': version })),
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))],
    });
    this.tracer = this.provider.getTracer('posthorn', version);
  }

  async publish<T>(given: string | undefined, work: (traceparent: string | null) => Promise<T>): Promise<T> {
    const span = this.tracer.startSpan('publish', { kind: SpanKind.SERVER }, contextOf(given));
    try {
      return await work(traceparentOf(span));
    } catch (error) {
      // The name and code alone: a message may quote what was published.
      const { name = 'Error', code } = error as { name?: string; code?: unknown };
      fail(span, typeof code === 'string' ? code : name);
      throw error;
    } finally {
      span.end();
    }
  }

  startAttempt(facts: AttemptFacts): AttemptSpan {
    const span = this.tracer.startSpan(
      'attempt',
      { kind: SpanKind.CLIENT, attributes: attributesOf(facts) },
      contextOf(facts.traceparent),
    );
    return {
      traceparent: traceparentOf(span),
      end({ statusCode, errorCode }: AttemptEnd) {
        if (statusCode !== null) span.setAttribute('http.response.status_code', statusCode);
        const isDelivered = statusCode !== null && statusCode >= 200 && statusCode < 300;
        if (!isDelivered) fail(span, errorCode ?? 'http_status');
        span.end();
      },
    };
  }

  async stop(): Promise<void> {
    const late = new AbortController();
    const ended = this.provider.shutdown().catch(() => undefined);
    await Promise.race([ended, pause(stopPatienceMs, late.signal)]);
    late.abort();
  }
}

function attributesOf(facts: AttemptFacts): Attributes {
  return {
    'http.request.method': 'POST',
    'posthorn.delivery.id': facts.deliveryId,
    'posthorn.event.id': facts.eventId,
    'posthorn.endpoint.id': facts.endpointId,
    'posthorn.tenant.id': facts.tenantId,
    'posthorn.attempt.number': facts.number,
    'posthorn.attempt.lane': facts.lane,
    'posthorn.run.id': facts.runId,
  };
}

function fail(span: Span, code: string): void {
  span.setAttribute('error.type', code);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function contextOf(traceparent: string | null | undefined): Context {
  const parent = parseTraceparent(traceparent);
  if (!parent) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: parent.traceId,
    spanId: parent.parentId,
    traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  });
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return formatTraceparent({ traceId, parentId: spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 });
}
