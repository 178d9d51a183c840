import { readFileSync } from 'node:fs';

export interface Route {
  /** `GET /v1/replays/{id}` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** Of path and query: `id`, `tenant_id`, … */
  readonly parameters: readonly string[];
  readonly takesBody: boolean;
}

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: unknown;
}

/** Every call under /v1, so that none is forgotten: from the reference, which a unit test holds to the code. */
export const routes: readonly Route[] = Object.entries(
  (
    JSON.parse(readFileSync(new URL('../../docs/reference/openapi.json', import.meta.url), 'utf8')) as {
      paths: Record<string, Record<string, Operation>>;
    }
  ).paths,
)
  .filter(([path]) => path.startsWith('/v1/'))
  .flatMap(([path, operations]) =>
    Object.entries(operations).map(([verb, { parameters = [], requestBody }]) => ({
      name: `${verb.toUpperCase()} ${path}`,
      method: verb.toUpperCase(),
      path,
      parameters: parameters.filter((one) => one.in !== 'header').map(({ name }) => name),
      takesBody: requestBody !== undefined,
    })),
  );

/** `/v1/replays/{id}/pause` → `replays` */
export function resourceOf(path: string): string {
  return /^\/v1\/((?:webhooks\/)?[a-z-]+)/.exec(path)?.[1] ?? '';
}
