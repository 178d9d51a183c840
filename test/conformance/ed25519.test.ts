import { generateSigningKey } from '../../src/security/signing-key.js';
import { startGoReceiver, startPythonReceiver } from './support/child-receiver.js';
import { changeBody, changeHeader, describeConformance } from './support/conform.js';
import { ed25519Verifier, startNodeReceiver } from './support/node-receiver.js';

const noMatch = /no matching signature found/;
const missing = /missing required headers/;

describeConformance({
  profile: 'cloudevents',
  signing: {
    name: 'standard_webhooks_ed25519',
    make: () => {
      const { secret, publicKey } = generateSigningKey();
      return { secret, known: publicKey };
    },
  },
  receivers: [(keys) => startNodeReceiver(keys, ed25519Verifier), startPythonReceiver, startGoReceiver],
  verifiers: [...Object.keys(ed25519Verifier), 'cryptography (PyPI)', 'crypto/ed25519 (Go)'],
  forgeries: [
    { name: 'a key that the receiver does not know', unknownSecret: true, refusal: noMatch },
    { name: 'a space more in the body', change: changeBody((text) => `${text} `), refusal: noMatch },
    { name: 'a signature that is too old', ageMs: 302_000, refusal: /message timestamp too old/ },
    { name: 'a signature from the future', ageMs: -302_000, refusal: /message timestamp too new/ },
    {
      name: 'another timestamp than was signed',
      change: changeHeader('Webhook-Timestamp', (value) => String(Number(value) - 1)),
      refusal: noMatch,
    },
    {
      name: 'another id than was signed',
      change: changeHeader('Webhook-Id', (value) => `${value}0`),
      refusal: noMatch,
    },
    {
      name: 'its signature under another version',
      change: changeHeader('Webhook-Signature', (value) => value.replaceAll('v1a,', 'v1,')),
      refusal: noMatch,
    },
    { name: 'no signature', change: changeHeader('Webhook-Signature', () => null), refusal: missing },
    { name: 'no timestamp', change: changeHeader('Webhook-Timestamp', () => null), refusal: missing },
  ],
});
