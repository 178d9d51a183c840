import { z } from 'zod';
import type { CallReport } from '../../contact/endpoint-caller.js';
import { defaultTestType } from './test-body.js';

/** Enough to see what answered. */
const shownBytes = 1_024;

export const testSendDto = z
  .strictObject({
    type: z
      .string()
      .optional()
      .meta({
        description: `The event type: a dotted name of at most 128 characters. Default: \`${defaultTestType}\`.`,
        example: 'invoice.paid',
      }),
    data: z
      .unknown()
      .optional()
      .meta({
        description: 'Any JSON value, sent byte for byte as given. Default: `{}`.',
        example: { invoice: 'in_1' },
      }),
  })
  .meta({ id: 'TestSend', description: 'What to send as a test.' });

export const callReportDto = z
  .object({
    delivered: z.boolean().describe('It answered 2xx.'),
    status_code: z.int().nullable().describe('The HTTP status of its answer; null when none came.'),
    error_code: z
      .string()
      .nullable()
      .describe('Why it wasn’t delivered: an attempt’s `error_code`; null where it was.'),
    error_message: z.string().nullable().describe('The same in words.'),
    duration_ms: z.int().describe('Milliseconds from dialling to the end of the answer.'),
    response_body: z.string().nullable().describe('The first 1,024 bytes of its answer, as text; null when none came.'),
  })
  .meta({ id: 'CallReport', description: 'What came of one request. It counts for nothing else.' });

export function toCallReport(report: CallReport): z.infer<typeof callReportDto> {
  return {
    delivered: report.passed,
    status_code: report.statusCode,
    error_code: report.errorCode,
    error_message: report.errorMessage,
    duration_ms: Math.round(report.durationMs),
    response_body: report.statusCode === null ? null : beginningOf(report.body),
  };
}

/** Without the first half of a character that is cut. */
function beginningOf(body: Buffer): string {
  return new TextDecoder().decode(body.subarray(0, shownBytes), { stream: body.length > shownBytes });
}
