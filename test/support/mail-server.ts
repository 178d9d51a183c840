import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface ReceivedMail {
  readonly from: string;
  readonly to: string[];
  /** As it came, headers and body. */
  readonly source: string;
  readonly messageId: string;
  readonly subject: string;
}

/** A mail server on loopback that keeps what it receives. */
export class MailServer {
  readonly mails: ReceivedMail[] = [];
  readonly logins: { readonly user: string; readonly password: string }[] = [];
  /** What it says to the next mails: null takes them. */
  refusal: string | null = null;
  /** Never answers what it is sent. */
  hangs = false;

  private constructor(
    private readonly server: SMTPServer,
    readonly port: number,
  ) {}

  static async start(options: { readonly port?: number; readonly password?: string } = {}): Promise<MailServer> {
    let running: MailServer | null = null;
    const server: SMTPServer = new SMTPServer({
      authOptional: options.password === undefined,
      allowInsecureAuth: true,
      disabledCommands: ['STARTTLS'],
      logger: false,
      onAuth: (login, _, done) => {
        const { user, password } = { user: login.username ?? '', password: login.password ?? '' };
        running?.logins.push({ user, password });
        if (options.password === undefined || password === options.password) return done(null, { user });
        // As rude as a server can be.
        return done(new Error(`Invalid login for ${user} with ${password}`));
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          if (!running || running.hangs) return;
          if (running.refusal !== null) return done(new Error(running.refusal));
          const source = Buffer.concat(chunks).toString();
          const { mailFrom, rcptTo } = session.envelope;
          running.mails.push({
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            source,
            messageId: headerOf(source, 'Message-ID'),
            subject: headerOf(source, 'Subject'),
          });
          done();
        });
      },
    });
    server.on('error', () => undefined);
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
    running = new MailServer(server, (server.server.address() as AddressInfo).port);
    return running;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }
}

function headerOf(source: string, name: string): string {
  const unfolded = source.split('\r\n\r\n')[0]!.replaceAll(/\r\n[ \t]+/g, ' ');
  return new RegExp(`^${name}: (.*)$`, 'im').exec(unfolded)?.[1]?.trim() ?? '';
}
