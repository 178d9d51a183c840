import type { CallReport } from '../src/contact/endpoint-caller.js';
import type { CallOutcome, EndpointCallActivities, HealthActivities } from './contracts/endpoint-health-activities.js';
import type { ActivityDependencies } from './ports.js';

/** Mails of one activity: all within the time that it has, at 10 s each. */
const mailsAtOnce = 5;

export function createHealthActivities({ health, waiting, announcer }: ActivityDependencies): HealthActivities {
  /** Also where the state was changed by an earlier try, which died before this. */
  const closeWaiting = async (endpointId: string): Promise<void> => {
    const closed = await waiting.closeAllOf(endpointId, (batch) => announcer.deliveriesClosed(batch));
    if (closed > 0) await announcer.letterAdded(endpointId);
  };
  return {
    async planHealth({ endpointId, dealtWith }) {
      const row = await health.read(endpointId, dealtWith);
      if (!row) return { kind: 'deleted' };
      const { version, host, status, statusReason, plan } = row;
      if (plan.tasks.length === 0) await health.expectNext(endpointId, version, plan.next?.inMs ?? null);
      return { kind: 'plan', version, host, status, statusReason, ...plan };
    },
    async expireVerification({ endpointId }) {
      await health.expireVerification(endpointId);
      await closeWaiting(endpointId);
    },
    async expireEndpoint({ endpointId }) {
      await health.expire(endpointId);
      await closeWaiting(endpointId);
    },
    async disableEndpoint({ endpointId }) {
      await health.disable(endpointId);
      await closeWaiting(endpointId);
    },
    warnOwner: ({ endpointId }) => health.warn(endpointId),
    tellDisabled: ({ endpointId }) => health.tellDisabled(endpointId),
    tellRefused: ({ endpointId }) => health.tellRefused(endpointId),
    tellRecovered: ({ endpointId }) => health.tellRecovered(endpointId),
    tellExpiring: ({ endpointId }) => health.tellExpiring(endpointId),
    tellCertificateExpiring: ({ endpointId }) => health.tellCertificateExpiring(endpointId),
  };
}

export function createEndpointCallActivities({
  caller,
  notices,
  mailer,
  log,
}: ActivityDependencies): EndpointCallActivities {
  return {
    verifyEndpoint: async ({ endpointId }) => outcomeOf(await caller.verify(endpointId)),
    pingEndpoint: async ({ endpointId }) => outcomeOf(await caller.pingPeriodically(endpointId)),
    probeEndpoint: async ({ endpointId }) => outcomeOf(await caller.probe(endpointId)),

    async sendMail({ endpointId }) {
      let sent = 0;
      if (!mailer) {
        await notices.giveUpMails(endpointId);
        return { sent, failed: 0 };
      }
      for (; sent < mailsAtOnce; sent++) {
        const mail = await notices.claimMail(endpointId);
        if (!mail) break;
        const error = await mailer.send(mail);
        if (error !== null) {
          log.warn(
            { notice_id: mail.id, endpoint_id: endpointId, error },
            'a mail could not be sent; it is tried again',
          );
          await notices.mailFailed(mail.id, error);
          return { sent, failed: 1 };
        }
        await notices.mailSent(mail.id);
      }
      return { sent, failed: 0 };
    },
  };
}

function outcomeOf(report: CallReport | null): CallOutcome {
  if (!report) return { result: 'not_due', way: null, statusCode: null, error: null };
  const { passed, sent, way, statusCode, errorCode } = report;
  // Nothing left this process: Temporal tries again in a moment.
  if (!sent) throw new Error('nothing was sent: no connection was free, or the proxy failed');
  return { result: passed ? 'passed' : 'failed', way, statusCode, error: errorCode };
}
