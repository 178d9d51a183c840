import { expect, it } from 'vitest';
import type { CpuProfile } from '../../bench/profile/cpu-profile.js';
import { flameGraph } from '../../bench/profile/flame-graph.js';

const frame = (functionName: string, url = '') => ({ functionName, url, lineNumber: 0 });

const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 5, 6] },
    { id: 2, callFrame: frame('send', 'file:///somewhere/dist/src/delivery/exchange.js'), children: [3, 4] },
    { id: 3, callFrame: frame('a<b', 'file:///somewhere/node_modules/undici/lib/client.js') },
    { id: 4, callFrame: frame('a<b', 'file:///somewhere/node_modules/undici/lib/client.js') },
    { id: 5, callFrame: frame('(idle)') },
    { id: 6, callFrame: frame('too little to be seen') },
  ],
  startTime: 1_000,
  samples: [5, 2, 3, 4, 6, 2],
  timeDeltas: [5_000, 4_000, 3_000, 2_999, 1, 90_000],
};

it('draws each function as wide as its share of the busy time of the window, callees below their callers', () => {
  const svg = flameGraph(profile, { fromUs: 0, toUs: 20_000, delivered: 10 }, 'A & B');
  expect(svg).toContain('A &#38; B: 0.0 s busy, 1000 µs a delivery');
  const boxes = [...svg.matchAll(/<title>([^<]*)<\/title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"/g)].map(
    ([, title, x, y, w]) => [title, Number(x), Number(y), Number(w)],
  );
  expect(boxes).toEqual([
    ['all 100.0 %', 0, 44, 1199.6],
    ['send src/delivery/exchange.js 100.0 %', 0, 59, 1199.5],
    ['a&#60;b node_modules/undici/lib/client.js 60.0 %', 0, 74, 719.5],
  ]);
  expect(svg).not.toContain('somewhere');
});
