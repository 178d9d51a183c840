import { type CallFrame, type CpuProfile, isWork, moduleOf, selfTimes, shortPath, type Window } from './cpu-profile.js';

interface Frame {
  readonly name: string;
  readonly module: string;
  us: number;
  readonly children: Map<string, Frame>;
}

const width = 1_200;
const rowHeight = 15;
const top = 44;
const characterWidth = 6.2;
/** What is narrower, of the whole, isn't drawn: nobody could see it. */
const leastShare = 0.002;

/** Callers above, callees below, as wide as their share of the thread's busy time; in order of their share. */
export function flameGraph(profile: CpuProfile, window: Window | null, title: string): string {
  const root = callTree(profile, window);
  const boxes: string[] = [];
  let depth = 0;
  const draw = (frame: Frame, x: number, level: number): void => {
    const w = (frame.us / root.us) * width;
    depth = Math.max(depth, level);
    boxes.push(box(frame, { x, y: top + level * rowHeight, w }, root.us));
    let at = x;
    for (const child of widestFirst(frame)) {
      if (child.us / root.us < leastShare) continue;
      draw(child, at, level + 1);
      at += (child.us / root.us) * width;
    }
  };
  draw(root, 0, 0);
  const height = top + (depth + 1) * rowHeight + 6;
  const each = window && window.delivered > 0 ? `, ${(root.us / window.delivered).toFixed(0)} µs a delivery` : '';
  const legend = Object.entries(colours).map(
    ([kind, colour], index) =>
      `<rect x="${6 + index * 130}" y="24" width="10" height="10" fill="${colour}"/>` +
      `<text x="${20 + index * 130}" y="33">${kind}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="10">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="6" y="15" font-size="12">${escaped(title)}: ${(root.us / 1e6).toFixed(1)} s busy${each}</text>`,
    ...legend,
    ...boxes,
    '</svg>\n',
  ].join('\n');
}

/** Calls of one function from one place are one frame, whichever line called. */
function callTree(profile: CpuProfile, window: Window | null): Frame {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const times = selfTimes(profile, window);
  const root: Frame = { name: 'all', module: '', us: 0, children: new Map() };
  const add = (id: number, parent: Frame): number => {
    const { callFrame, children = [] } = nodes.get(id)!;
    const own = isWork(callFrame) ? frameOf(callFrame, parent) : parent;
    let us = isWork(callFrame) ? (times.get(id) ?? 0) : 0;
    for (const child of children) us += add(child, own);
    if (own !== parent) own.us += us;
    return us;
  };
  root.us = add(profile.nodes[0]!.id, root);
  return root;
}

function frameOf(frame: CallFrame, parent: Frame): Frame {
  const { functionName, url } = frame;
  const name = url === '' ? functionName || '(native)' : `${functionName || '(anonymous)'} ${shortPath(url)}`;
  const known = parent.children.get(name);
  if (known) return known;
  const made: Frame = { name, module: moduleOf(frame), us: 0, children: new Map() };
  parent.children.set(name, made);
  return made;
}

const widestFirst = ({ children }: Frame): Frame[] => [...children.values()].sort((a, b) => b.us - a.us);

const colours = { Posthorn: '#f4a259', packages: '#8cb8d9', Node: '#cfd8c5', 'V8 and native': '#d9d9d9' };

function colourOf({ module }: Frame): string {
  if (/^(src|activities|workflows|bench|examples)\b/.test(module)) return colours.Posthorn;
  if (module.startsWith('node:')) return colours.Node;
  return module === '' || module === 'native code' || module.startsWith('(')
    ? colours['V8 and native']
    : colours.packages;
}

function box(frame: Frame, { x, y, w }: { x: number; y: number; w: number }, allUs: number): string {
  const share = `${((frame.us / allUs) * 100).toFixed(1)} %`;
  const room = Math.floor((w - 4) / characterWidth);
  const text = frame.name.length <= room ? frame.name : frame.name.slice(0, Math.max(0, room - 1)) + '…';
  const label = room < 3 ? '' : `<text x="${(x + 2).toFixed(1)}" y="${y + 11}">${escaped(text)}</text>`;
  return (
    `<g><title>${escaped(frame.name)} ${share}</title>` +
    `<rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(0.3, w - 0.4).toFixed(1)}" height="${rowHeight - 1}" fill="${colourOf(frame)}"/>${label}</g>`
  );
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
