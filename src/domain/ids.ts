/** Prefixes of the ids that Posthorn makes: a prefix and a ULID. */
export const idPrefixes = {
  event: 'evt_',
  endpoint: 'we_',
  delivery: 'whd_',
  attempt: 'att_',
  apiKey: 'key_',
  secret: 'sec_',
  /** Of a verification, a ping, a test send: what is no delivery. */
  message: 'msg_',
  notice: 'ntc_',
  replay: 'rpl_',
  /** A process, as its leases of deliveries name it. */
  leaseHolder: 'lse_',
} as const;

const ulid = '[0-7][0-9A-HJKMNP-TV-Z]{25}';

/** Does `id` have the form of a delivery's id? Says nothing of whether that delivery exists. */
export function isDeliveryId(id: string): boolean {
  return new RegExp(`^${idPrefixes.delivery}${ulid}$`).test(id);
}

/** Does `id` have the form of an endpoint's id? */
export function isEndpointId(id: string): boolean {
  return new RegExp(`^${idPrefixes.endpoint}${ulid}$`).test(id);
}

/** Does `id` have the form of a replay's id? */
export function isReplayId(id: string): boolean {
  return new RegExp(`^${idPrefixes.replay}${ulid}$`).test(id);
}

/** A producer's own event id: 1 – 200 of these characters. */
export const eventIdPattern = /^[A-Za-z0-9._:-]{1,200}$/;

/** A tenant's name. */
export const tenantIdPattern = /^[A-Za-z0-9._-]{1,64}$/;
export const defaultTenantId = 'default';
