import { changeBody, changeHeader, describeConformance } from './support/conform.js';
import { startNodeReceiver, stripeVerifier } from './support/node-receiver.js';

const noMatch = /^No signatures found matching the expected signature/;

describeConformance({
  profile: 'default',
  receivers: [(secrets) => startNodeReceiver(secrets, stripeVerifier)],
  verifiers: Object.keys(stripeVerifier),
  forgeries: [
    { name: 'a secret that the receiver does not know', unknownSecret: true, refusal: noMatch },
    { name: 'a space more in the body', change: changeBody((text) => `${text} `), refusal: noMatch },
    {
      name: 'another type in the body',
      change: changeBody((text) => text.replace('"type":"', '"type":"x')),
      refusal: noMatch,
    },
    { name: 'a signature that is too old', ageMs: 302_000, refusal: /^Timestamp outside the tolerance zone/ },
    {
      name: 'another timestamp than was signed',
      change: changeHeader('Webhook-Signature', (value) => value.replace(/^t=(\d+)/, (_, t) => `t=${Number(t) - 1}`)),
      refusal: noMatch,
    },
    {
      name: 'no signature',
      change: changeHeader('Webhook-Signature', (value) => value.replace(/,.*/, '')),
      refusal: /^No signatures found with expected scheme/,
    },
  ],
});
