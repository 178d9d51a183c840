import { temporalServerVariable, UsageError } from '../options.js';
import { startEmbeddedEngines } from './embedded.js';
import type { Engines } from './engines.js';
import { startProductionEngines } from './production.js';

export async function startEngines(which: 'embedded' | 'production'): Promise<Engines> {
  if (which === 'embedded') return startEmbeddedEngines();
  const binaries = process.env[temporalServerVariable];
  if (!binaries)
    throw new UsageError(`--engines production needs ${temporalServerVariable}, the folder of Temporal's programs`);
  return startProductionEngines(binaries);
}
