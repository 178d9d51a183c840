const maxLength = 300;

/** What was wrong, for an operator, in one line; a server that repeats our credentials is not quoted with them. */
export function tellFailure(error: unknown, smtpUrl: string): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const said = typeof message === 'string' ? message : String(error);
  const line = `${typeof code === 'string' ? `${code}: ` : ''}${said}`.replaceAll(/\s+/g, ' ');
  return secretsOf(smtpUrl)
    .reduce((text, secret) => text.replaceAll(secret, '…'), line)
    .slice(0, maxLength)
    .replace(/[\uD800-\uDBFF]$/, '');
}

/** Each of the forms in which user and password may come back. */
function secretsOf(smtpUrl: string): string[] {
  const { username, password } = new URL(smtpUrl);
  const plain = [username, password].map(decoded);
  const joined = `\u0000${plain[0]}\u0000${plain[1]}`;
  const base64 = [...plain, joined].map((text) => Buffer.from(text).toString('base64'));
  return [smtpUrl, password, username, ...plain, ...base64]
    .filter((text) => text.length >= 3)
    .sort((a, b) => b.length - a.length);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
