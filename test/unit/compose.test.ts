import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { configurationKeys, loadConfig } from '../../src/config/config.js';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[]; readonly interval: string; readonly timeout: string };
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly restart?: string;
  readonly stop_grace_period?: string;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const composeText = read('docker-compose.yml');
const compose = parse(composeText, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const service = (name: string): Service => compose.services[name]!;
/** Ends when its work is done. */
const isJob = ({ restart }: Service): boolean => restart?.startsWith('on-failure') ?? false;

const secrets = {
  POSTGRES_PASSWORD: '0123456789abcdef',
  TEMPORAL_POSTGRES_PASSWORD: 'fedcba9876543210',
  POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  POSTHORN_BOOTSTRAP_API_KEY: '0123456789abcdef0123456789abcdef',
};
const variable = /\$\{(\w+)(?::([-?])([^}]*))?\}/g;

/** As Compose does it: `${NAME:?message}` is refused where it is empty, `${NAME:-default}` isn't. */
function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(variable, (_, name: string, operator: string | undefined, rest: string | undefined) => {
    const value = env[name] ?? '';
    if (value === '' && operator === '?') throw new Error(`${name}: ${rest}`);
    return value === '' && operator === '-' ? (rest ?? '') : value;
  });
}

const environmentOf = (name: string, env: Readonly<Record<string, string>> = secrets): Record<string, string> =>
  Object.fromEntries(
    Object.entries(service(name).environment ?? {}).map(([key, value]) => [key, interpolate(value, env)]),
  );

describe('docker-compose.yml', () => {
  it('has all that production needs', () => {
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(['postgres', 'temporal', 'temporal-ui', 'api', 'worker', 'mailpit']),
    );
  });

  it.each(services)('%s has an image with a version', (_, { image }) => {
    expect(image).toMatch(/^[\w./-]+:v?\d+(\.\d+)+[\w.-]*$/);
  });

  it('runs the versions of Temporal that belong together', () => {
    const versions = ['temporal', 'temporal-schema', 'temporal-namespace'].map(
      (name) => service(name).image.split(':')[1],
    );
    expect(new Set(versions).size).toBe(1);
    // The one that the production-server suite tests with.
    expect(read('scripts/production-server/temporal-binaries.mjs')).toContain(`temporalVersion = '${versions[0]}'`);
  });

  it.each(services.filter(([, it]) => !isJob(it)))(
    '%s has a health check and is started again',
    (_, { healthcheck, restart }) => {
      expect(healthcheck?.test[0]).toBe('CMD');
      expect(healthcheck?.test.length).toBeGreaterThan(1);
      expect(healthcheck).toMatchObject({
        interval: expect.stringMatching(/^\d+s$/),
        timeout: expect.stringMatching(/^\d+s$/),
      });
      expect(restart).toBe('unless-stopped');
    },
  );

  it.each(services)('%s waits for services that exist, in a state that they can reach', (_, { depends_on }) => {
    for (const [name, { condition }] of Object.entries(depends_on ?? {})) {
      expect(compose.services).toHaveProperty(name);
      expect(condition).toBe(isJob(service(name)) ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  it('waits for nothing in a circle', () => {
    const visit = (name: string, path: readonly string[]): void => {
      expect(path).not.toContain(name);
      for (const next of Object.keys(service(name).depends_on ?? {})) visit(next, [...path, name]);
    };
    for (const [name] of services) visit(name, []);
  });

  it.each(services)('%s mounts what exists', (_, { volumes }) => {
    for (const volume of volumes ?? []) {
      const [source = '', , mode] = volume.split(':');
      if (!source.startsWith('.')) {
        expect(compose.volumes).toHaveProperty(source);
        continue;
      }
      expect(existsSync(`${root}${source}`), source).toBe(true);
      expect(mode, `${source} is not written to`).toBe('ro');
      if (source.endsWith('.sh')) accessSync(`${root}${source}`, constants.X_OK);
    }
  });

  it('gives the server the dynamic configuration that the production-server suite tests with', () => {
    const path = service('temporal').environment!['DYNAMIC_CONFIG_FILE_PATH']!;
    const mount = service('temporal').volumes!.find((volume) => path.startsWith(`${volume.split(':')[1]}/`))!;
    const file = path.replace(mount.split(':')[1]!, mount.split(':')[0]!);
    expect(file).toBe('./deploy/temporal/dynamic-config.yaml');
    expect(parse(read(file))).toMatchObject({ 'matching.enableFairness': [{ value: true }] });
  });

  it.each(services)('%s is open to this machine only', (_, { ports }) => {
    for (const port of ports ?? []) expect(interpolate(port, {})).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  });

  it.each(['api', 'worker'] as const)('sets only what the %s knows, and all that it must have', (name) => {
    const environment = environmentOf(name);
    const ours = Object.keys(environment).filter((key) => /^(POSTHORN|TEMPORAL)_/.test(key));
    expect(configurationKeys).toEqual(expect.arrayContaining(ours));
    const config = loadConfig(name, environment);
    expect(config.temporal.address).toBe('temporal:7233');
    expect(new URL(config.database.url!)).toMatchObject({ hostname: 'postgres', password: secrets.POSTGRES_PASSWORD });
    // Trial settings have no place in production.
    expect(config.delivery).toMatchObject({ allowHttp: 'off', allowedCidrs: [], retryWaitsMs: null });
  });

  it('runs API, worker and namespace set-up on one namespace, kept for 31 days', () => {
    const setup = environmentOf('temporal-namespace');
    for (const name of ['api', 'worker']) {
      expect(environmentOf(name)).toMatchObject({
        TEMPORAL_ADDRESS: setup['TEMPORAL_ADDRESS'],
        TEMPORAL_NAMESPACE: setup['TEMPORAL_NAMESPACE'],
      });
    }
    expect(setup['TEMPORAL_NAMESPACE_RETENTION']).toBe('31d');
  });

  it.each(Object.keys(secrets))('says what to do where %s is missing', (missing) => {
    const message = expect.stringContaining(`${missing}: set it in .env, see deploy/example.env`);
    expect(() => interpolate(composeText, { ...secrets, [missing]: '' })).toThrow(expect.objectContaining({ message }));
  });

  it('holds no secret, and names every variable in deploy/example.env', () => {
    const example = read('deploy/example.env');
    for (const [, name, operator] of composeText.matchAll(variable)) {
      // What has no default has to be filled in.
      if (operator === '?') expect(example).toMatch(new RegExp(`^${name}=$`, 'm'));
      else if (name !== 'TEMPORAL_PORT') expect(example).toMatch(new RegExp(`^# ${name}=`, 'm'));
    }
    for (const [name, { environment }] of services) {
      for (const [key, value] of Object.entries(environment ?? {})) {
        if (/PASSWORD|PWD|KEY/.test(key)) expect(value, `${name} ${key}`).toMatch(/^\$\{\w+:\?[^}]+\}$/);
      }
    }
  });

  it('runs API and worker from one image, each with time to finish what it has begun', () => {
    const [api, worker] = [service('api'), service('worker')];
    expect(worker.image).toBe(api.image);
    expect(worker.build).toBe(api.build);
    expect(api.image).toBe(`posthorn:${(JSON.parse(read('package.json')) as { version: string }).version}`);
    expect(Number.parseInt(worker.stop_grace_period!, 10)).toBeGreaterThan(40);
    expect(api.command).toEqual(['node', 'dist/src/main.js']);
    expect(worker.command).toEqual(['node', 'dist/src/worker.js']);
    expect(worker.healthcheck!.test).toEqual(['CMD', 'node', 'deploy/healthcheck.mjs', 'worker']);
  });
});

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile');
  const instructions = dockerfile
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line));
  const all = (name: string): string[] =>
    instructions.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));

  it('builds on a base image with a full version', () => {
    const base = /^NODE_IMAGE=(.+)$/.exec(all('ARG')[0]!)![1];
    expect(base).toMatch(/^node:20\.\d+\.\d+-bookworm-slim$/);
    for (const from of all('FROM')) expect(from).toMatch(/^\$\{NODE_IMAGE\} AS \w+$/);
  });

  it('runs as somebody without rights, as production, and passes signals on', () => {
    expect(all('USER').at(-1)).toBe('node');
    expect(all('ENV')).toContain('NODE_ENV=production');
    // The exec form: a shell in between would keep SIGTERM for itself.
    expect(JSON.parse(all('CMD').at(-1)!)).toEqual(['node', 'dist/src/main.js']);
    expect(
      instructions.some((line) => /^HEALTHCHECK .*CMD \["node", "deploy\/healthcheck.mjs", "api"\]$/.test(line)),
    ).toBe(true);
  });

  it('runs files that the build makes or the image is given', () => {
    for (const entry of ['main', 'worker']) expect(existsSync(`${root}src/${entry}.ts`)).toBe(true);
    const { compilerOptions } = parse(read('tsconfig.json')) as { compilerOptions: Record<string, string> };
    expect(compilerOptions).toMatchObject({ rootDir: '.', outDir: 'dist' });
    const imports = [...read('deploy/healthcheck.mjs').matchAll(/from '\.\.\/dist\/(.+)\.js'/g)].map(
      ([, path]) => path!,
    );
    expect(imports.length).toBeGreaterThan(0);
    for (const path of imports) expect(existsSync(`${root}${path}.ts`), path).toBe(true);
  });

  it('is given every file that it copies, and no others', () => {
    const lines = read('.dockerignore').split('\n');
    expect(lines).toContain('*');
    const given = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    const copied = all('COPY').filter((line) => !line.startsWith('--from') && !line.startsWith('. '));
    for (const file of copied.flatMap((line) => line.split(' ').slice(0, -1))) {
      expect(given).toContain(file);
      expect(existsSync(`${root}${file}`), file).toBe(true);
    }
    const build = parse(read('tsconfig.build.json')) as { include: string[] };
    expect(given).toEqual(expect.arrayContaining([...build.include, 'scripts', 'nest-cli.json', 'tsconfig.json']));
    expect(lines).toContain('**/.env*');
  });
});
