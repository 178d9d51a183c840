import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCertificates } from '../../../src/delivery/ca-file.js';
import { answer as ok } from '../../support/raw-endpoint.js';
import { certificates } from '../../support/tls/certificates.js';
import { newClient, newEndpoint, post } from './harness.js';

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'posthorn-ca-'))));
afterAll(() => rmSync(directory, { recursive: true }));

const file = (name: string, text: string): string => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};

describe('POSTHORN_DELIVERY_CA_FILE', () => {
  it('makes endpoints with a certificate of a private authority reachable', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { tls: certificates.receiver });
    const bundle = file('bundle.pem', `# our own\n${certificates.authority}\n${certificates.selfSigned.cert}`);
    const extraCa = readCertificates(bundle);
    expect(extraCa).toHaveLength(2);
    const request = post(`https://receiver.test:${endpoint.port}/`);
    expect(await newClient({ allowHttp: 'off', extraCa }).send(request)).toMatchObject({ statusCode: 200 });
    expect(await newClient({ allowHttp: 'off' }).send(request)).toMatchObject({ errorCode: 'tls_failed' });
  });

  it.each([
    ['that is missing', () => join(directory, 'nowhere.pem'), /nowhere\.pem can't be read \(ENOENT\)/],
    ['without a certificate', () => file('empty.pem', 'nothing'), /empty\.pem holds no PEM certificate/],
    [
      'with a broken one',
      () =>
        file('broken.pem', `${certificates.authority}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`),
      /certificate 2 of .*broken\.pem can't be read/,
    ],
  ])('refuses a file %s, and says what is wrong', (_, path, message) => {
    expect(() => readCertificates(path())).toThrow(message);
  });

  it('is not needed', () => {
    expect(readCertificates(null)).toEqual([]);
  });
});
