import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Credentials towards endpoints, client certificates, and keys that sign with Ed25519. */
export class Credentials1765000000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      alter table endpoints
        -- Each a JSON object, sealed. Null: there are none.
        add column sealed_credentials text,
        add column sealed_client_certificate text,
        -- Of the certificate, for its owner to be told in time.
        add column client_certificate_expires_at timestamptz(3),
        drop constraint endpoints_signature_check,
        add constraint endpoints_signature_check check (signature in ('default', 'standard_webhooks', 'standard_webhooks_ed25519'))`);
    await db.query(`
      alter table endpoint_secrets
        add column type text not null default 'hmac' check (type in ('hmac', 'ed25519')),
        -- whpk_…, of an Ed25519 key.
        add column public_key text,
        add check ((type = 'ed25519') = (public_key is not null))`);
    await db.query(`
      alter table endpoint_checks
        drop constraint endpoint_checks_kind_check,
        -- token: what came of the last request for an OAuth 2.0 token.
        add constraint endpoint_checks_kind_check check (kind in ('verification', 'ping', 'probe', 'token'))`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`delete from endpoint_checks where kind = 'token'`);
    await db.query(`
      alter table endpoint_checks
        drop constraint endpoint_checks_kind_check,
        add constraint endpoint_checks_kind_check check (kind in ('verification', 'ping', 'probe'))`);
    await db.query(`delete from endpoint_secrets where type = 'ed25519'`);
    await db.query(`alter table endpoint_secrets drop column public_key, drop column type`);
    await db.query(
      `update endpoints set signature = 'standard_webhooks' where signature = 'standard_webhooks_ed25519'`,
    );
    await db.query(`
      alter table endpoints
        drop constraint endpoints_signature_check,
        add constraint endpoints_signature_check check (signature in ('default', 'standard_webhooks')),
        drop column client_certificate_expires_at, drop column sealed_client_certificate, drop column sealed_credentials`);
  }
}
