import { describe, expect, it } from 'vitest';
import { LocalLane } from '../../activities/local-lane.js';

describe('the local lane', () => {
  it('takes so many attempts of an endpoint and no more', () => {
    const lane = new LocalLane(2);
    expect(lane.enter('a')).not.toBeNull();
    expect(lane.enter('a')).not.toBeNull();
    expect(lane.enter('a')).toBeNull();
  });

  it('is open to other endpoints while one has filled its share', () => {
    const lane = new LocalLane(1);
    lane.enter('a');
    expect(lane.enter('a')).toBeNull();
    expect(lane.enter('b')).not.toBeNull();
  });

  it('has room again for each attempt that left, once', () => {
    const lane = new LocalLane(1);
    const leave = lane.enter('a');
    leave?.();
    leave?.();
    expect(lane.enter('a')).not.toBeNull();
    expect(lane.enter('a')).toBeNull();
  });

  it('takes sixteen when nothing else is said', () => {
    const lane = new LocalLane();
    const entered = Array.from({ length: 300 }, () => lane.enter('a')).filter((leave) => leave !== null);
    expect(entered).toHaveLength(16);
  });
});
