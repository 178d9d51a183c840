/** What a load is made of; the same for Posthorn and for everything that it is compared with. */
export interface Saturation {
  /** Publishes go on for so long, then what is under way is delivered. */
  readonly ms: number;
  /** Rates are counted after so long, when the pipeline is full. */
  readonly rampMs: number;
  /** Requests, or starts of workflows, at once. */
  readonly width: number;
  /** Events per request. */
  readonly batch: number;
  /** No more events are published while so many are on their way: the pipeline stays full and no queue grows without end. */
  readonly outstanding: number;
}

/** So many events a second, each when its time comes, whether or not the earlier ones have arrived. */
export interface Steadiness {
  readonly ms: number;
  readonly perSecond: number;
}

/** The deliveries of a spell, as they came; times by the common clock. */
export interface Arrivals {
  readonly atUs: readonly number[];
  /** From the beginning of the publish request. */
  readonly latencyUs: readonly number[];
  /** Requests beyond the first for an event. */
  readonly repeated: number;
}

/** One load from its first publish until all has arrived. */
export interface Spell {
  readonly windowFromUs: number;
  readonly windowToUs: number;
  readonly accepted: number;
  readonly acceptedInWindow: number;
  /** Publishes that were not accepted. */
  readonly refused: number;
  /** Latencies of all arrivals count, also of those after the window: the slowest are among them. */
  readonly latenciesOfAll: boolean;
  readonly arrivals: Arrivals;
}

export type Published = Omit<Spell, 'arrivals'>;

/** An event of 1 kB; the receiver finds out of its data when it was published. */
export function eventText(type: string, sentUs: number, number: number): string {
  return `{"type":"${type}","data":{"sent_us":${sentUs.toFixed(1)},"n":${number},"text":"${filler}"}}`;
}

const filler = 'x'.repeat(920);
const stamp = /"sent_us":([0-9.]+),"n":([0-9]+)/;

export function readStamp(body: string): { sentUs: number; number: number } | null {
  const found = stamp.exec(body);
  return found ? { sentUs: Number(found[1]), number: Number(found[2]) } : null;
}
