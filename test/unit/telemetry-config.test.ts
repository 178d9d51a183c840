import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/config.js';

const tracing = (env: Record<string, string>) => loadConfig('standalone', env).tracing;

describe('the settings of telemetry', () => {
  it('are: metrics by the API, none by workers, no traces', () => {
    const { metrics, tracing: traces } = loadConfig('standalone', {});
    expect(metrics).toEqual({ enabled: true, port: null });
    expect(traces).toEqual({ url: null, serviceName: 'posthorn' });
  });

  it('are read', () => {
    const env = { POSTHORN_METRICS: 'off', POSTHORN_METRICS_PORT: '9464', OTEL_SERVICE_NAME: 'hooks' };
    expect(loadConfig('standalone', env)).toMatchObject({
      metrics: { enabled: false, port: 9464 },
      tracing: { serviceName: 'hooks' },
    });
  });

  it("know OpenTelemetry's two addresses: below the general one, or the whole one of traces", () => {
    const general = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };
    expect(tracing(general).url).toBe('http://collector:4318/v1/traces');
    const whole = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example.com/in' };
    expect(tracing({ ...general, ...whole }).url).toBe('https://traces.example.com/in');
    expect(tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }).url).toBeNull();
  });

  it('are refused where they are no address', () => {
    expect(() => tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' })).toThrow(ConfigError);
  });
});
