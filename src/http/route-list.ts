import { Problem } from './problems/problem.js';
import { noSuchPath } from './problems/to-problem.js';

/** Tells a path that nobody knows (404) from a method that a known path doesn't take (405, RFC 9110 section 15.5.6). */
export class RouteList {
  readonly #routes: { readonly path: RegExp; readonly methods: readonly string[] }[] = [];

  /** `url` as registered: `/v1/events/:id`. Catch-alls take any path and so tell nothing. */
  add(method: string | readonly string[], url: string): void {
    if (url.includes('*')) return;
    const pattern = url.replace(/[.+?^$()[\]{}|\\]/g, '\\$&').replace(/:[^/]+/g, '[^/]+');
    this.#routes.push({ path: new RegExp(`^${pattern}$`), methods: typeof method === 'string' ? [method] : method });
  }

  missing(method: string, url: string): Problem {
    const path = url.split('?', 1)[0] ?? '';
    const methods = this.#routes.flatMap((route) => (route.path.test(path) ? route.methods : []));
    if (methods.length === 0) return noSuchPath();
    const allowed = [...new Set(methods)].sort().join(', ');
    return new Problem(405, 'method_not_allowed', `This path does not take ${method}: it takes ${allowed}`, {
      headers: { Allow: allowed },
    });
  }
}
