import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { searchAttributes } from '../../workflows/contracts/names.js';
import type { Logger } from '../telemetry/logger.js';

const { IndexedValueType } = proto.temporal.api.enums.v1;
const names = Object.values(searchAttributes);

/** A search attribute exists under our name with another type. Registering over it is accepted silently and changes nothing. */
export class SearchAttributeTypeError extends Error {
  override readonly name = 'SearchAttributeTypeError';
  constructor(wrong: readonly string[], namespace: string) {
    const repairs = wrong.map(
      (name) => `temporal operator search-attribute remove --namespace ${namespace} --name ${name} --yes`,
    );
    super(
      `These search attributes exist with another type than Keyword: ${wrong.join(', ')}. ` +
        `Remove them, then start again:\n  ${repairs.join('\n  ')}`,
    );
  }
}

/**
 * Registers what is missing, after listing what is there.
 * @throws {SearchAttributeTypeError} when a name is taken by another type, with the command that repairs it.
 */
export async function registerSearchAttributes(client: Client, namespace: string, log: Logger): Promise<void> {
  const { operatorService } = client.connection as { operatorService?: OperatorService };
  if (!operatorService) return;
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const known = customAttributes ?? {};
  const wrong = names.filter((name) => name in known && known[name] !== IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD);
  if (wrong.length > 0) throw new SearchAttributeTypeError(wrong, namespace);
  const missing = names.filter((name) => !(name in known));
  if (missing.length === 0) return;
  await operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD])),
  });
  log.info({ registered: missing }, 'search attributes registered');
}

type OperatorService = proto.temporal.api.operatorservice.v1.OperatorService;
