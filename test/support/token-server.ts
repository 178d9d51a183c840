import { createServer, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface TokenRequestSeen {
  readonly authorization: string | undefined;
  readonly form: URLSearchParams;
}

/** An OAuth 2.0 token server on loopback, which notes what it was asked. */
export class TokenServer {
  readonly requests: TokenRequestSeen[] = [];
  /** The tokens that it gave, in order. */
  readonly tokens: string[] = [];
  expiresInS: unknown = 3_600;
  /** Answers in place of a token. */
  answer: ((reply: ServerResponse) => void) | null = null;

  private constructor(private readonly server: Server) {}

  static async start(): Promise<TokenServer> {
    const server = createServer();
    const tokens = new TokenServer(server);
    server.on('request', (request, reply) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const form = new URLSearchParams(Buffer.concat(chunks).toString());
        tokens.requests.push({ authorization: request.headers.authorization, form });
        if (tokens.answer) return tokens.answer(reply);
        const token = `token-${tokens.tokens.length + 1}-that-stays-out`;
        tokens.tokens.push(token);
        reply.writeHead(200, { 'content-type': 'application/json' });
        reply.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: tokens.expiresInS }));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return tokens;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/token`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
