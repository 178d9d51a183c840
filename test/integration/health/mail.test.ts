import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createMailer } from '../../../src/mail/mailer.js';
import { findFreePorts } from '../../../src/embedded/ports.js';
import { MailServer } from '../../support/mail-server.js';
import { day } from '../attempts/harness.js';
import { Health } from './harness.js';

const minute = 60_000;
const from = 'Posthorn <posthorn@example.com>';
let health: Health;
let server: MailServer;
const closings: (() => unknown)[] = [];

beforeAll(async () => {
  health = await Health.start();
  server = await MailServer.start();
});
afterEach(async () => {
  server.mails.length = 0;
  server.refusal = null;
  for (const close of closings.splice(0)) await close();
});
afterAll(async () => {
  await server.stop();
  await health.stop();
});

function mailBy(smtpUrl: string | null, dir: string | null = null): void {
  const mailer = createMailer({ smtpUrl, from, dir }, 'https://posthorn.example.com');
  closings.push(() => mailer?.close());
  health.mailer = mailer;
}

const failing = (columns: Record<string, unknown> = {}): Promise<string> =>
  health.endpoint({ failing_since: new Date(Date.now() - 2 * day), ...columns });

describe('an owner’s mail', () => {
  it('arrives once, with the notice’s id as its Message-ID', async () => {
    mailBy(server.url);
    const id = await failing();
    await health.run(id);
    await health.run(id);
    const [notice] = await health.notices(id);
    expect(server.mails).toMatchObject([
      { from: 'posthorn@example.com', to: ['owner@example.com'], messageId: `<${notice!.id}@example.com>` },
    ]);
    expect(server.mails[0]!.subject).toContain('hooks.example.com');
    for (const type of ['text/plain', 'text/html']) expect(server.mails[0]!.source).toContain(type);
    expect(notice).toMatchObject({ mail_status: 'sent', mail_attempts: 1, mail_error: null });
  });

  it('is sent once by two processes that try at once', async () => {
    mailBy(server.url);
    const id = await failing();
    await health.perform('warn', id);
    await Promise.all(Array.from({ length: 6 }, () => health.perform('send_mail', id)));
    expect(server.mails).toHaveLength(1);
  });

  it('is tried again after 1, 2, 4 … minutes while the server is away, and arrives when it is back', async () => {
    const [port] = await findFreePorts(1);
    mailBy(`smtp://127.0.0.1:${port}`);
    const id = await failing();
    const waits: number[] = [];
    for (let tries = 0; tries < 4; tries++) {
      const { plan } = await health.run(id);
      expect(plan.next).toMatchObject({ task: 'send_mail' });
      waits.push(Math.round(plan.next!.inMs / minute));
      const [notice] = await health.notices(id);
      expect(notice).toMatchObject({ mail_status: 'pending', mail_attempts: tries + 1 });
      expect(notice!.mail_error).toContain('ECONNREFUSED');
      await health.pass(id, plan.next!.inMs);
    }
    expect(waits).toEqual([1, 2, 4, 8]);
    const back = await MailServer.start({ port: port! });
    closings.push(() => back.stop());
    await health.run(id);
    expect(back.mails).toHaveLength(1);
    expect((await health.notices(id))[0]).toMatchObject({ mail_status: 'sent', mail_error: null });
  });

  it('is given up after three days, visibly', async () => {
    const [port] = await findFreePorts(1);
    mailBy(`smtp://127.0.0.1:${port}`);
    const id = await health.endpoint({ refused_since: new Date(), last_success_at: new Date() });
    let waited = 0;
    for (let tries = 0; tries < 60; tries++) {
      const { plan } = await health.run(id);
      if (plan.next?.task !== 'send_mail') break;
      expect(plan.next.inMs).toBeLessThanOrEqual(6 * 60 * minute);
      waited += plan.next.inMs;
      await health.pass(id, plan.next.inMs);
    }
    expect(waited).toBeGreaterThan(2.5 * day);
    expect(waited).toBeLessThanOrEqual(3 * day);
    expect((await health.notices(id))[0]).toMatchObject({ mail_status: 'failed' });
    expect(await health.store().health('default', id)).toMatchObject({ mail: { failed: 1, pending: 0 } });
  });

  it('that the server refuses says why, without our credentials', async () => {
    const strict = await MailServer.start({ password: 'the right one' });
    closings.push(() => strict.stop());
    mailBy(`smtp://some-user:wrong-password@127.0.0.1:${strict.port}`);
    const id = await failing();
    await health.run(id);
    expect(strict.logins).toMatchObject([{ user: 'some-user', password: 'wrong-password' }]);
    const [notice] = await health.notices(id);
    expect(notice!.mail_error).toMatch(/EAUTH.*Invalid login/);
    expect(JSON.stringify(notice)).not.toMatch(/wrong-password|some-user/);
  });

  it('isn’t lost where the process dies between claim and sending, nor sent early', async () => {
    mailBy(server.url);
    const id = await failing();
    await health.perform('warn', id);
    expect(await health.base.notices.claimMail(id)).toMatchObject({ to: 'owner@example.com' });
    expect((await health.run(id)).plan.next).toMatchObject({ task: 'send_mail' });
    expect(server.mails).toHaveLength(0);
    await health.pass(id, minute);
    await health.run(id);
    expect(server.mails).toHaveLength(1);
  });

  it('waits no longer than 10 s for a server that is silent', async () => {
    server.hangs = true;
    mailBy(server.url);
    const id = await failing();
    const startedAt = Date.now();
    await health.run(id);
    server.hangs = false;
    expect(Date.now() - startedAt).toBeLessThan(13_000);
    expect((await health.notices(id))[0]!.mail_error).toContain('10 s');
  });

  it('goes to exactly the address that the endpoint has', async () => {
    mailBy(server.url);
    const id = await failing({ owner_email: 'o,other@example.com' });
    await health.run(id);
    expect(server.mails.flatMap(({ to }) => to)).not.toContain('other@example.com');
  });
});

describe('without a mail server', () => {
  it('mails are files that a mail program opens', async () => {
    const dir = join(mkdtempSync(join(tmpdir(), 'mails-')), 'mail');
    closings.push(() => rmSync(dir, { recursive: true }));
    mailBy(null, dir);
    const id = await failing();
    await health.run(id);
    const [notice] = await health.notices(id);
    expect(readdirSync(dir)).toEqual([`${notice!.id}.eml`]);
    const mail = readFileSync(join(dir, `${notice!.id}.eml`), 'utf8');
    expect(mail).toMatch(/^To: owner@example.com$/m);
    expect(mail).toContain('multipart/alternative');
    expect(notice).toMatchObject({ mail_status: 'sent' });
  });

  it('or a directory there is none, and the notice says why', async () => {
    mailBy(null);
    const id = await failing();
    await health.run(id);
    expect((await health.notices(id))[0]).toMatchObject({ mail_status: 'none', mail_error: 'mail is not configured' });
  });

  it('or an owner’s address there is none either', async () => {
    mailBy(server.url);
    const id = await failing({ owner_email: null });
    expect((await health.run(id)).done).toEqual(['warn']);
    expect((await health.notices(id))[0]).toMatchObject({
      mail_status: 'none',
      mail_error: 'the endpoint has no owner_email',
    });
  });
});
