/** How long after an attempt was due the sweeper looks whether anybody works on it. */
export const sweepGraceMs = 10_000;

/** A change of an endpoint's health that its workflow wasn't told of is told by the sweeper after this long. */
export const healthGraceMs = 5_000;
