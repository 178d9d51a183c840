import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { signatureHeaders, UnusableSecretError } from '../../src/delivery/signature.js';
import { generateSigningKey, readSigningKey } from '../../src/security/signing-key.js';

/** Published with Svix's server, whose signatures others verify: Ed25519 has one signature for one message. */
const vector = {
  secret: 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==',
  publicKey: 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=',
  message: {
    messageId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    body: Buffer.from('{"test": 2432232314}'),
    unixSeconds: 1_614_265_330,
  },
  signature: 'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==',
};

const sign = (...secrets: string[]) => signatureHeaders('standard_webhooks_ed25519', { ...vector.message, secrets });

describe('a signature by Ed25519', () => {
  it('is byte for byte that of another sender', () => {
    expect(sign(vector.secret)).toEqual({
      'Webhook-Timestamp': '1614265330',
      'Webhook-Signature': vector.signature,
    });
    expect(readSigningKey(vector.secret)?.publicKey).toBe(vector.publicKey);
  });

  it('stands there once for each key, the newest first', () => {
    const { secret, publicKey } = generateSigningKey();
    const [first = '', second] = sign(secret, vector.secret)['Webhook-Signature']!.split(' ');
    expect(second).toBe(vector.signature);
    const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const { messageId, unixSeconds, body } = vector.message;
    const content = Buffer.concat([Buffer.from(`${messageId}.${unixSeconds}.`), body]);
    expect(verify(null, content, key, Buffer.from(first.slice('v1a,'.length), 'base64'))).toBe(true);
  });

  it.each([
    ['a shared secret', `whsec_${Buffer.alloc(32).toString('base64')}`],
    ['a seed alone', `whsk_${Buffer.alloc(32).toString('base64')}`],
    ['another public half', vector.secret.replace('6Xb', '7Xb')],
    ['base64 of another kind', vector.secret.replaceAll('/', '_')],
    ['nothing', 'whsk_'],
  ])('is not made with %s, and the error says nothing of it', (_what, secret) => {
    expect(() => sign(secret)).toThrow(UnusableSecretError);
    expect(() => sign(secret)).toThrow(/^A key of the endpoint is not whsk_ and base64 of 64 bytes$/);
  });
});
