export const secretPrefix = 'whsec_';
/** Of Ed25519 keys, private and public (Standard Webhooks, "Signature scheme"). */
export const signingKeyPrefix = 'whsk_';
export const publicKeyPrefix = 'whpk_';

/** `hmac`: shared with the consumer. `ed25519`: the consumer has the public half. */
export const secretTypes = ['hmac', 'ed25519'] as const;
export type SecretType = (typeof secretTypes)[number];

export const minSecretBytes = 32;
export const maxSecretBytes = 64;

/** Of a key pair that everybody knows. */
export const examplePublicKey = `${publicKeyPrefix}1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=`;

/** Of 32 bytes, and plainly nobody's secret. */
export const exampleSecret = `${secretPrefix}ZXhhbXBsZS1vbmx5LWRvLW5vdC11c2UtaXQtaGVyZSE=`;

export type SecretJudgement =
  | { readonly ok: true; readonly base64: string }
  /** The rule that the text breaks. It never repeats any of the text. */
  | { readonly ok: false; readonly rule: string };

/**
 * Judges a signing secret: `whsec_` and the canonical base64 of 32 – 64 bytes. Canonical, because some verifiers read the text and
 * some the bytes, and lenient decoders disagree about every other form.
 */
export function judgeSecret(text: string): SecretJudgement {
  if (text === '') return refuse('a secret is not empty');
  if (/\s/.test(text)) return refuse('a secret has no whitespace');
  if (!text.startsWith(secretPrefix)) {
    return refuse(
      text.toLowerCase().startsWith(secretPrefix)
        ? `the prefix is ${secretPrefix} in small letters`
        : `a secret begins with ${secretPrefix}`,
    );
  }
  const base64 = text.slice(secretPrefix.length);
  if (base64 === '') return refuse(`base64 of ${minSecretBytes} – ${maxSecretBytes} bytes follows ${secretPrefix}`);
  if (base64.startsWith(secretPrefix)) return refuse(`${secretPrefix} stands there once`);
  if (/[-_]/.test(base64)) return refuse('the base64 is the standard kind, with + and / and without - and _');
  const [, digits = '', padding = ''] = /^([A-Za-z0-9+/]*)(=*)$/.exec(base64) ?? [];
  if (digits === '') return refuse(`after ${secretPrefix} come only letters, digits, +, / and = at the end`);
  if (digits.length % 4 === 1) return refuse('the base64 is complete: some of it is missing or too much');
  const neededPadding = (4 - (digits.length % 4)) % 4;
  if (padding.length !== neededPadding) {
    return refuse(`the base64 is padded with = to a multiple of four characters, here with ${neededPadding}`);
  }
  if (!lastDigitIsCanonical(digits))
    return refuse('the base64 is canonical: the unused bits of its last character are 0');
  const bytes = Math.floor((digits.length * 3) / 4);
  if (bytes < minSecretBytes || bytes > maxSecretBytes) {
    return refuse(`a secret holds ${minSecretBytes} – ${maxSecretBytes} bytes, and this one holds ${bytes}`);
  }
  return { ok: true, base64 };
}

function lastDigitIsCanonical(digits: string): boolean {
  switch (digits.length % 4) {
    case 2:
      return /[AQgw]$/.test(digits);
    case 3:
      return /[AEIMQUYcgkosw048]$/.test(digits);
    default:
      return true;
  }
}

function refuse(rule: string): SecretJudgement {
  return { ok: false, rule: `${rule}; an accepted form is ${exampleSecret}` };
}
