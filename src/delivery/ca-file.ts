import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * Certificates of a PEM bundle, each one checked to be one.
 * @throws {Error} that names the file and what is wrong with it: a missing authority would fail every delivery to it.
 */
export function readCertificates(path: string | null): string[] {
  if (path === null) return [];
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`POSTHORN_DELIVERY_CA_FILE: ${path} can't be read (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    });
  }
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error(`POSTHORN_DELIVERY_CA_FILE: ${path} holds no PEM certificate`);
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block).toString();
    } catch (error) {
      throw new Error(`POSTHORN_DELIVERY_CA_FILE: certificate ${index + 1} of ${path} can't be read`, { cause: error });
    }
  });
}
