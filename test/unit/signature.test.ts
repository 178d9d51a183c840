import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signatureHeaders, UnusableSecretError } from '../../src/delivery/signature.js';
import { signatureNames } from '../../src/domain/profiles.js';
import {
  signatureHeader,
  signedContentPrefix,
  standardSignatureHeader,
  standardSignedContentPrefix,
} from '../../src/domain/signing.js';
import { generateSecret } from '../../src/security/signing-secret.js';

const unixSeconds = 1_769_860_800;
const messageId = 'whd_1';
const body = Buffer.from('{"a":"é"}', 'utf8');

describe('the text of a signature', () => {
  it.each([
    ['default', signatureHeader(1, ['ab']), 't=1,v1=ab'],
    ['default, in rotation', signatureHeader(1, ['ab', 'cd']), 't=1,v1=ab,v1=cd'],
    ['what default signs', signedContentPrefix(1), '1.'],
    ['standard_webhooks', standardSignatureHeader(['YQ==']), 'v1,YQ=='],
    ['standard_webhooks, in rotation', standardSignatureHeader(['YQ==', 'Yg==']), 'v1,YQ== v1,Yg=='],
    ['what standard_webhooks signs', standardSignedContentPrefix('whd_1', 1), 'whd_1.1.'],
  ])('is right: %s', (_, text, expected) => {
    expect(text).toBe(expected);
  });
});

describe('the signature of a message', () => {
  it("is by the secret's text in the default form", () => {
    const [fresh, old] = [generateSecret(), generateSecret()];
    const hex = [fresh, old].map((secret) =>
      createHmac('sha256', secret).update(`${unixSeconds}.`).update(body).digest('hex'),
    );
    expect(signatureHeaders('default', { messageId, body, secrets: [fresh, old], unixSeconds })).toEqual({
      'Webhook-Signature': `t=${unixSeconds},v1=${hex[0]},v1=${hex[1]}`,
    });
  });

  it('is what the Standard Webhooks library makes in its form, the newest first', () => {
    const secrets = [generateSecret(), generateSecret(), generateSecret()];
    const theirs = secrets.map((secret) =>
      new Webhook(secret).sign(messageId, new Date(unixSeconds * 1_000), body.toString('utf8')),
    );
    expect(signatureHeaders('standard_webhooks', { messageId, body, secrets, unixSeconds })).toEqual({
      'Webhook-Timestamp': String(unixSeconds),
      'Webhook-Signature': theirs.join(' '),
    });
  });

  it.each(signatureNames)('is refused without a secret that can sign: %s', (name) => {
    for (const secrets of [[], [''], [generateSecret(), '']]) {
      expect(() => signatureHeaders(name, { messageId, body, secrets, unixSeconds })).toThrow(UnusableSecretError);
    }
  });
});
