import { pause } from './pause.js';

/** What `work` answers, or `late` after so many milliseconds; the work itself goes on. */
export async function within<T, Late>(ms: number, work: Promise<T>, late: Late): Promise<T | Late> {
  const done = new AbortController();
  try {
    return await Promise.race([work, pause(ms, done.signal).then(() => late)]);
  } finally {
    done.abort();
  }
}
