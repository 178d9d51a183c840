import type { EventTypeDefinition, EventTypeVersion } from '../../domain/event-catalogue.js';

/** The catalogue as a page that needs no script. Everything that somebody wrote is escaped. */
export function cataloguePage(tenantId: string, types: readonly EventTypeDefinition[]): string {
  const title = tenantId === 'default' ? 'Event types' : `Event types of ${tenantId}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2330; background: #fff }
section { border-top: 1px solid #c9cfda; margin-top: 2rem }
pre { background: #f3f5f8; padding: 1rem; overflow-x: auto }
code { font-family: ui-monospace, monospace }
.note { color: #8a3b00 }
@media (prefers-color-scheme: dark) {
  body { color: #e6e9ef; background: #14171d } pre { background: #20252e } section { border-color: #3a4150 } .note { color: #ffb27a } a { color: #8ab4ff }
}
</style>
</head>
<body>
<main>
<h1>${escape(title)}</h1>
${types.length === 0 ? '<p>None is registered yet.</p>' : `<nav><ul>\n${types.map(entry).join('\n')}\n</ul></nav>`}
${types.map(typeSection).join('\n')}
</main>
</body>
</html>
`;
}

const entry = ({ name, deprecated }: EventTypeDefinition): string =>
  `<li><a href="#${escape(name)}"><code>${escape(name)}</code></a>${deprecated ? ' <span class="note">deprecated</span>' : ''}</li>`;

function typeSection(type: EventTypeDefinition): string {
  const { name, description, deprecated, deprecation, payload, pointers, versions } = type;
  const newestFirst = versions.toReversed();
  return [
    `<section id="${escape(name)}">`,
    `<h2><code>${escape(name)}</code></h2>`,
    ...(deprecated ? [`<p class="note">Deprecated. ${escape(deprecation ?? '')}</p>`] : []),
    ...(description === null ? [] : [`<p>${escape(description)}</p>`]),
    payload === 'thin'
      ? `<p>Thin: of the data only ${pointers.map((one) => `<code>${escape(one)}</code>`).join(', ') || 'what each version names'} is sent.</p>`
      : '<p>All of the data is sent.</p>',
    ...newestFirst.map((version, index) => versionSection(name, version, index === 0)),
    '</section>',
  ].join('\n');
}

function versionSection(name: string, version: EventTypeVersion, newest: boolean): string {
  const { description, schema, examples, pointers } = version;
  return [
    `<h3 id="${escape(`${name}@${version.version}`)}">Version ${escape(version.version)}${newest ? ' (newest)' : ''}</h3>`,
    ...(description === null ? [] : [`<p>${escape(description)}</p>`]),
    ...(pointers === null ? [] : [`<p>Sent: ${pointers.map((one) => `<code>${escape(one)}</code>`).join(', ')}</p>`]),
    ...(schema === null ? [] : [`<details><summary>Schema</summary>${code(schema)}</details>`]),
    ...examples.map((example) => `<p>Example of <code>data</code>:</p>\n${code(example)}`),
  ].join('\n');
}

const code = (value: unknown): string => `<pre><code>${escape(JSON.stringify(value, null, 2))}</code></pre>`;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
