import { rename, writeFile } from 'node:fs/promises';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type { MailToSend } from '../database/notice-store.js';
import { renderNotice } from './notice-mail.js';
import { tellFailure } from './smtp-failure.js';

/** Where an owner's mails go. */
export interface Mailer {
  /** Null when it went out; else what was wrong, without credentials. Never rejects. */
  send(mail: MailToSend): Promise<string | null>;
  close(): void;
}

export interface MailSettings {
  /** `smtp://user:password@host:port`: never shown, never logged. */
  readonly smtpUrl: string | null;
  readonly from: string;
  /** Without a server, mails are written there as files; null: there is no mail. */
  readonly dir: string | null;
}

/** Owners' mails wait for each other no longer than this for each. */
const sendTimeoutMs = 10_000;

/** Null where nobody sends mails. `apiUrl`: where owners reach the API, null where they can't. */
export function createMailer({ smtpUrl, from, dir }: MailSettings, apiUrl: string | null): Mailer | null {
  if (smtpUrl !== null) return new SmtpMailer(smtpUrl, from, apiUrl);
  if (dir !== null) return new FileMailer(dir, from, apiUrl);
  return null;
}

/** The server's address is the operator's, not a tenant's: no address policy applies to it, it is often an inner one. */
class SmtpMailer implements Mailer {
  private readonly transport;

  constructor(
    private readonly smtpUrl: string,
    private readonly from: string,
    private readonly apiUrl: string | null,
  ) {
    const timeouts = {
      connectionTimeout: sendTimeoutMs,
      greetingTimeout: sendTimeoutMs,
      socketTimeout: sendTimeoutMs,
      dnsTimeout: sendTimeoutMs,
    };
    this.transport = createTransport({ url: smtpUrl, ...timeouts });
  }

  async send(mail: MailToSend): Promise<string | null> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const sending = this.transport.sendMail(toMessage(mail, this.from, this.apiUrl));
      // Who is given up may fail later; nobody waits for it then.
      sending.catch(() => undefined);
      const late = new Promise<string>((resolve) => {
        timer = setTimeout(() => resolve(`no answer within ${sendTimeoutMs / 1_000} s`), sendTimeoutMs);
      });
      return await Promise.race([sending.then(() => null), late]);
    } catch (error) {
      return tellFailure(error, this.smtpUrl);
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.transport.close();
  }
}

/** For trials: a mail is a file that any mail program opens. */
class FileMailer implements Mailer {
  private readonly transport = createTransport({ streamTransport: true, buffer: true, newline: 'unix' });

  constructor(
    private readonly dir: string,
    private readonly from: string,
    private readonly apiUrl: string | null,
  ) {}

  async send(mail: MailToSend): Promise<string | null> {
    try {
      const { message } = await this.transport.sendMail(toMessage(mail, this.from, this.apiUrl));
      mkdirSync(this.dir, { recursive: true, mode: 0o700 });
      const path = join(this.dir, `${mail.id}.eml`);
      await writeFile(`${path}.part`, message as Buffer, { mode: 0o600 });
      await rename(`${path}.part`, path);
      return null;
    } catch (error) {
      return `not written: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  close(): void {
    this.transport.close();
  }
}

/** The same Message-ID however often it is sent: whoever gets it twice sees it once. */
function toMessage(mail: MailToSend, from: string, apiUrl: string | null): SendMailOptions {
  const { subject, text, html } = renderNotice(mail, apiUrl);
  const domain = /@([A-Za-z0-9.-]+)>?\s*$/.exec(from)?.[1] ?? 'posthorn.invalid';
  return {
    from,
    // An object is an address as it stands, whatever is in it; a text would be read as a list.
    to: { name: '', address: mail.to },
    subject,
    text,
    html,
    date: mail.createdAt,
    messageId: `<${mail.id}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Posthorn-Notice': mail.type },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
