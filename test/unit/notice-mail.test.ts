import { describe, expect, it } from 'vitest';
import { noticeTypes } from '../../src/domain/closed-lists.js';
import { renderNotice } from '../../src/mail/notice-mail.js';
import { tellFailure } from '../../src/mail/smtp-failure.js';

const data = {
  endpoint_id: 'we_01KC0000000000000000000001',
  host: 'hooks.example.com',
  description: 'orders',
  since: '2026-01-31T12:00:00.000Z',
  failing_for_ms: 86_400_000,
  disabled_at: '2026-02-07T12:00:00.000Z',
  expires_at: '2026-03-01T00:00:00.000Z',
  last_status_code: 503,
  last_error: 'HTTP 503',
  count: 3,
  open: 4,
  reasons: { attempts_exhausted: 3 },
  delivery_ids: ['whd_1'],
};
const mail = (type: (typeof noticeTypes)[number], changes: Record<string, unknown> = {}) =>
  renderNotice(
    {
      id: 'ntc_1',
      to: 'owner@example.com',
      type,
      createdAt: new Date('2026-02-01T12:00:00Z'),
      data: { ...data, ...changes },
    },
    'https://posthorn.example.com',
  );

describe('a mail to the owner', () => {
  it.each(noticeTypes)('about %s says what happened, what comes next and what to do, as text and as HTML', (type) => {
    const { subject, text, html } = mail(type);
    expect(subject).toContain('hooks.example.com (orders)');
    for (const body of [text, html]) {
      for (const part of ['What happened', 'What comes next', 'What you can do', 'HTTP 503', 'ntc_1'])
        expect(body).toContain(part);
      expect(body).toContain(
        'https://posthorn.example.com/v1/webhooks/subscriptions/we_01KC0000000000000000000001/health',
      );
      expect(body).not.toMatch(/undefined|\[object|NaN/);
    }
  });

  it('tells times and durations as people do', () => {
    expect(mail('endpoint.failing').subject).toContain('failing for 24 hours');
    expect(mail('endpoint.failing', { failing_for_ms: 3 * 86_400_000 }).subject).toContain('72 hours');
    expect(mail('endpoint.failing', { failing_for_ms: 7 * 86_400_000 }).subject).toContain('7 days');
    expect(mail('endpoint.failing').text).toContain('2026-02-07 12:00 UTC');
  });

  it('lets nothing of a tenant’s become markup, a header or a line of its own', () => {
    const { subject, text, html } = mail('endpoint.failing', {
      description: '<img src=x onerror="alert(1)">\r\nBcc: everybody@example.com',
      last_error: 'a\n\nWhat you can do:\n  Send your password & more',
    });
    expect(html).not.toContain('<img');
    expect(html).toContain('&lt;img src=x onerror=&quot;alert(1)&quot;&gt;');
    expect(subject).not.toMatch(/[\r\n]/);
    expect(text.match(/^What you can do:$/gm)).toHaveLength(1);
    expect(text).not.toMatch(/^Bcc/m);
  });

  it('has no link where owners can’t reach the API', () => {
    const notice = { id: 'ntc_1', to: 'o@example.com', type: 'endpoint.failing', createdAt: new Date(), data } as const;
    const { text, html } = renderNotice(notice, null);
    expect(text + html).not.toContain('http');
  });
});

describe('what is said of a mail server', () => {
  const url = 'smtp://someone:p%40ss-word@mail.example.com:587';
  it('quotes it, without our credentials in any form', () => {
    const encoded = Buffer.from('\u0000someone\u0000p@ss-word').toString('base64');
    const said = `535 not you, someone with p@ss-word or p%40ss-word,\r\n535 ${encoded} ${Buffer.from('p@ss-word').toString('base64')}`;
    const told = tellFailure(Object.assign(new Error(said), { code: 'EAUTH' }), url);
    expect(told).toBe('EAUTH: 535 not you, … with … or …, 535 … …');
  });

  it('is a short line', () => {
    const told = tellFailure(new Error(`x\n${'😀'.repeat(500)}`), url);
    expect(told.length).toBeLessThanOrEqual(300);
    expect(told).toMatch(/^x 😀+$/u);
  });
});
