/** The proxy through which all calls to endpoints leave. */
export interface ProxySettings {
  readonly tls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`: never shown. */
  readonly authorization: string | null;
}

const rule = 'must be a URL such as http://proxy.example.com:3128 or https://user:password@proxy.example.com';

/** @throws with a rule that repeats nothing of the text, which may hold a password. */
export function parseProxyUrl(text: string): ProxySettings {
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) throw new Error(rule);
  const url = new URL(text);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.port === '0') throw new Error(rule);
  const tls = url.protocol === 'https:';
  return {
    tls,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (tls ? 443 : 80)),
    authorization: url.username === '' && url.password === '' ? null : basic(url),
  };
}

function basic({ username, password }: URL): string {
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
  } catch {
    throw new Error(rule);
  }
}
