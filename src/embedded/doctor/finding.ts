/** What one check found: `warn` works for now, `FAIL` won't. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'FAIL';
  readonly what: string;
  /** What to do about it. */
  readonly todo?: string;
}

export const ok = (what: string): Finding => ({ status: 'ok', what });
export const warn = (what: string, todo: string): Finding => ({ status: 'warn', what, todo });
export const fail = (what: string, todo: string): Finding => ({ status: 'FAIL', what, todo });

const indent = (text: string): string => text.split('\n').join('\n      ');

export function formatFinding({ status, what, todo }: Finding): string {
  return `${status.padEnd(4)}  ${indent(what)}${todo === undefined ? '' : `\n      → ${indent(todo)}`}`;
}
