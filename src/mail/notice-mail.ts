import type { NoticeType } from '../domain/closed-lists.js';
import type { MailToSend } from '../database/notice-store.js';

export interface RenderedMail {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

type Data = MailToSend['data'];

/** What an owner is told, in this order. */
interface Story {
  readonly subject: string;
  readonly happened: string;
  readonly since: string | null;
  readonly next: string;
  readonly todo: string;
}

/** One template for all notices, as text and as HTML. `apiUrl`: where the owner reaches the API, null where it can't. */
export function renderNotice(notice: MailToSend, apiUrl: string | null): RenderedMail {
  const { data } = notice;
  const story = stories[notice.type](data);
  const endpointId = text(data['endpoint_id']);
  const description = text(data['description']);
  const name = `${text(data['host'])}${description === '' ? '' : ` (${description})`}`;
  const rows: [string, string][] = [
    ['Endpoint', `${name}, ${endpointId}`],
    ['What happened', story.happened],
    ...(story.since === null ? [] : [['Since', story.since] as [string, string]]),
    ...lastAnswer(data),
    ['What comes next', story.next],
    ['What you can do', story.todo],
  ];
  const link = apiUrl === null ? null : `${apiUrl}/v1/webhooks/subscriptions/${encodeURIComponent(endpointId)}/health`;
  const foot = `Notice ${notice.id}, ${notice.type}, ${time(notice.createdAt)}`;
  return {
    subject: oneLine(`[Posthorn] ${name}: ${story.subject}`),
    text: [
      ...rows.map(([title, value]) => `${title}:\n  ${oneLine(value)}\n`),
      ...(link === null ? [] : [`State and evidence:\n  ${link}\n`]),
      `-- \n${foot}\n`,
    ].join('\n'),
    html: page(story.subject, rows, link, foot),
  };
}

const recoverMissed = 'Events that it missed can be recovered afterwards.';

const stories: Readonly<Record<NoticeType, (data: Data) => Story>> = {
  'endpoint.failing': (data) => ({
    subject: `failing for ${duration(data['failing_for_ms'])}`,
    happened: `Every request of the last ${duration(data['failing_for_ms'])} has failed.`,
    since: time(data['since']),
    next: `Posthorn goes on trying. Without one success it disables the endpoint on ${time(data['disabled_at'])}.`,
    todo: 'Look at the last answer, and repair the receiver. The next success ends this by itself.',
  }),
  'endpoint.refused': (data) => ({
    subject: 'it refuses our credentials',
    happened: 'The endpoint answers 401 or 403, and had accepted our requests before.',
    since: time(data['since']),
    next: 'Posthorn goes on trying, with longer waits.',
    todo: 'Check the secret or the credentials that the receiver expects, and give the endpoint new ones where they changed.',
  }),
  'endpoint.disabled': (data) => ({
    subject: 'disabled',
    happened:
      data['reason'] === 'gone'
        ? 'The endpoint answered 410 Gone, so it was disabled at once.'
        : 'The endpoint had no success for so long that it was disabled.',
    since: time(data['since']),
    next: `What waited for it was given up and is kept as dead letters; new events are not delivered to it.${
      data['reason'] !== 'gone'
        ? data['auto_enable'] === true
          ? ' Posthorn pings it from time to time, and enables it when it answers.'
          : ' Posthorn pings it from time to time, and tells you when it answers.'
        : ''
    }`,
    todo: `Repair the receiver and enable the endpoint, or delete it. ${recoverMissed}`,
  }),
  'endpoint.recovered': (data) => ({
    subject: data['enabled'] === true ? 'it works again' : 'it answers again',
    happened:
      data['enabled'] === true
        ? 'The endpoint answers with success again, and takes deliveries.'
        : 'The endpoint answers to pings again. It is still disabled.',
    since: time(data['since']),
    next: data['enabled'] === true ? 'What waits is delivered, at a rising rate.' : 'Nothing, until it is enabled.',
    todo:
      data['enabled'] === true
        ? 'Replay the dead letters and recover the missed events that you want to have.'
        : `Enable it. ${recoverMissed}`,
  }),
  'endpoint.expiring': (data) => ({
    subject: `expires on ${time(data['expires_at'])}`,
    happened: `The endpoint’s time ends on ${time(data['expires_at'])}.`,
    since: null,
    next: 'From then on nothing is delivered to it, and what waits is given up.',
    todo: 'Renew it before that date, or let it go.',
  }),
  'endpoint.expired': (data) => ({
    subject: 'expired',
    happened: 'The endpoint’s time is over: nothing is delivered to it any more.',
    since: time(data['expires_at']),
    next: 'What waited for it was given up and is kept as dead letters.',
    todo: `Renew it, or delete it. ${recoverMissed}`,
  }),
  'endpoint.certificate_expiring': (data) => ({
    subject: `its client certificate ends on ${time(data['expires_at'])}`,
    happened: `The client certificate that Posthorn shows to the endpoint is valid until ${time(data['expires_at'])}.`,
    since: null,
    next: 'The endpoint will probably refuse every request from then on.',
    todo: 'Give the endpoint another certificate and key before that date (client_certificate).',
  }),
  'endpoint.backlog': (data) => ({
    subject: 'deliveries pile up',
    happened: `${text(data['size'])} deliveries wait for the endpoint, and they grow more.`,
    since: data['oldest_at'] === undefined ? null : time(data['oldest_at']),
    next: `${data['estimated_seconds'] === undefined || data['estimated_seconds'] === null ? '' : `At its rate limit that takes about ${text(data['estimated_seconds'])} s. `}They are delivered as fast as the endpoint and its limits allow; what waits for too long is given up.`,
    todo: 'Raise its rate limit, make the receiver faster, or subscribe to fewer events.',
  }),
  'endpoint.verification_expired': (data) => ({
    subject: 'not verified in time',
    happened: `The endpoint never answered its verification (${text(data['tries'])} tries), so it was disabled.`,
    since: time(data['since']),
    next: 'Nothing is delivered to it. What was kept for it was given up and is kept as dead letters.',
    todo: 'Let the receiver answer the verification, then ask for it again, or delete the endpoint.',
  }),
  'delivery.exhausted': (data) => ({
    subject: `${text(data['count'])} deliveries were given up`,
    happened: `${text(data['count'])} deliveries became dead letters (${reasons(data['reasons'])}). ${text(data['open'])} are open in all.`,
    since: time(data['since']),
    next: 'They are kept until they are replayed or expire.',
    todo: `Repair the receiver, then replay them. Among them: ${list(data['delivery_ids'])}.`,
  }),
};

function lastAnswer(data: Data): [string, string][] {
  const answer = [data['last_status_code'], data['last_error']].map(text).filter((part) => part !== '');
  return answer.length > 0 ? [['Last answer', answer.join(', ')]] : [];
}

function page(title: string, rows: readonly [string, string][], link: string | null, foot: string): string {
  const cells = rows
    .map(
      ([name, value]) =>
        `<dt style="font-weight:bold">${escape(name)}</dt><dd style="margin:0 0 12px">${escape(value)}</dd>`,
    )
    .join('\n');
  const state = link === null ? '' : `<p><a href="${escape(link)}">State and evidence</a></p>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escape(title)}</title></head>
<body style="font-family:sans-serif;max-width:40em">
<h1 style="font-size:1.2em">${escape(title)}</h1>
<dl>
${cells}
</dl>
${state}
<p style="color:#666;font-size:0.8em">${escape(foot)}</p>
</body></html>
`;
}

function escape(value: string): string {
  return value
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Line ends would end a header, and look like text of ours. */
function oneLine(value: string): string {
  // oxlint-disable-next-line no-control-regex
  return value.replaceAll(/[\u0000-\u001f\u007f\u2028\u2029]+/g, ' ').trim();
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

function list(value: unknown): string {
  return Array.isArray(value) ? value.map(text).join(', ') : '';
}

function reasons(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '';
  return Object.entries(value)
    .map(([reason, count]) => `${reason}: ${text(count)}`)
    .join(', ');
}

function time(value: unknown): string {
  const at = value instanceof Date ? value : new Date(text(value));
  return Number.isNaN(at.getTime()) ? 'unknown' : `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function duration(value: unknown): string {
  const ms = typeof value === 'number' ? value : 0;
  const units = [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
    ['second', 1_000],
  ] as const;
  // 24 and 72 hours are what people call them.
  const [unit, size] = units.find(([, length]) => ms >= (length === 86_400_000 ? 4 * length : length)) ?? units[3];
  const count = Math.round((ms / size) * 10) / 10;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
