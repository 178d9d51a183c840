import { expect } from 'vitest';
import { contentTypes, tenantSource } from '../../src/domain/envelope.js';
import { startGoReceiver, startPythonReceiver } from './support/child-receiver.js';
import { changeBody, changeHeader, describeConformance } from './support/conform.js';
import { cloudEventsReader, hashOfData, standardVerifiers, startNodeReceiver } from './support/node-receiver.js';

const noMatch = /no matching signature found/i;
const tooOld = /message timestamp too old/i;
const tooNew = /message timestamp too new/i;
const missing = /missing required headers/i;

describeConformance({
  profile: 'cloudevents',
  receivers: [
    (secrets) => startNodeReceiver(secrets, standardVerifiers, cloudEventsReader),
    startPythonReceiver,
    startGoReceiver,
  ],
  verifiers: [...Object.keys(standardVerifiers), 'standardwebhooks (PyPI)', 'standard-webhooks (Go)'],
  forgeries: [
    { name: 'a secret that the receiver does not know', unknownSecret: true, refusal: noMatch },
    { name: 'a space more in the body', change: changeBody((text) => `${text} `), refusal: noMatch },
    {
      name: 'another type in the body',
      change: changeBody((text) => text.replace('"type":"', '"type":"x')),
      refusal: noMatch,
    },
    { name: 'a signature that is too old', ageMs: 302_000, refusal: tooOld },
    { name: 'a signature from the future', ageMs: -302_000, refusal: tooNew },
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
    { name: 'no signature', change: changeHeader('Webhook-Signature', () => null), refusal: missing },
    { name: 'no timestamp', change: changeHeader('Webhook-Timestamp', () => null), refusal: missing },
  ],
  reader: {
    name: cloudEventsReader.name,
    look: (event, delivery) =>
      expect(event).toEqual({
        specversion: '1.0',
        id: delivery.eventId,
        source: delivery.source ?? tenantSource(delivery.tenantId),
        type: delivery.type,
        time: delivery.createdAt,
        datacontenttype: 'application/json',
        ...(delivery.subject === null ? {} : { subject: delivery.subject }),
        data: hashOfData(JSON.parse(delivery.data)),
      }),
    malformed: [
      { name: 'an empty type', change: changeBody((text) => text.replace(/"type":"[^"]*"/, '"type":""')) },
      { name: 'no type', change: changeBody((text) => text.replace(/"type":"[^"]*",/, '')) },
      { name: 'no source', change: changeBody((text) => text.replace(/"source":"[^"]*",/, '')) },
      { name: 'an empty source', change: changeBody((text) => text.replace(/"source":"[^"]*"/, '"source":""')) },
      {
        name: 'a source that is no URI reference',
        change: changeBody((text) => text.replace(/"source":"[^"]*"/, '"source":"a b"')),
      },
      { name: 'an attribute in capitals', change: changeBody((text) => text.replace('"time"', '"Time"')) },
      {
        name: 'another announcement of what it is',
        change: changeHeader('Content-Type', () => contentTypes.default),
      },
    ],
  },
});
