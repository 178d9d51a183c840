import { formatFinding } from './embedded/doctor/finding.js';
import { runDoctor } from './embedded/doctor/run-doctor.js';

const help = `npm run doctor

Checks what commonly goes wrong on this machine, a line each: ok, warn (works for now) or FAIL, with what to do.
It reads the same environment variables as npm start: Node, settings, encryption keys, data directory, ports;
the embedded Postgres, or the database at POSTHORN_DATABASE_URL; the Temporal CLI and Python, or the server at
TEMPORAL_ADDRESS with its namespace, retention and search attributes.

It starts and fetches nothing. Exit code: 0 when nothing failed, 1 when something did, 2 for unknown arguments.`;

const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  console.log(help);
} else if (args.length > 0) {
  console.error(`Unknown argument: ${args.join(' ')}\n\n${help}`);
  process.exitCode = 2;
} else {
  const failures = await runDoctor(process.env, (finding) => console.log(formatFinding(finding)));
  console.log(failures === 0 ? '\nNothing stands in the way.' : `\n${failures} failed.`);
  process.exitCode = failures === 0 ? 0 : 1;
}
