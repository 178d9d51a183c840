import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';

const directory = join(import.meta.dirname, 'histories');

export async function keepHistory(name: string, handle: WorkflowHandle): Promise<void> {
  const history = JSON.parse(historyToJSON(await handle.fetchHistory())) as unknown;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${name}.json`), `${withoutMachine(JSON.stringify(history))}\n`);
}

/** Stack traces and identities name the machine that recorded: a history is about the workflow alone. */
function withoutMachine(text: string): string {
  return text.replaceAll(`${process.cwd()}/`, '/posthorn/').replaceAll(/\d+@[\w.-]+/g, 'worker');
}
