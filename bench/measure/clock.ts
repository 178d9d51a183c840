/** Microseconds of a clock that all processes of one machine share, so that a time taken in one may be subtracted in another. */
export function nowUs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + nanoseconds / 1e3;
}
