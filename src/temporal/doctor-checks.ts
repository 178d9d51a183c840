import { Connection, isGrpcServiceError } from '@temporalio/client';
import { searchAttributes } from '../../workflows/contracts/names.js';
import { fail, type Finding, ok, warn } from '../embedded/doctor/finding.js';

const TIMEOUT_MS = 5_000;
const WANTED_RETENTION_DAYS = 31;
const DAY_SECONDS = 86_400;
/** gRPC status and IndexedValueType of the API, which are numbers on the wire. */
const NOT_FOUND = 5;
const KEYWORD = 2;
const valueTypes = ['Unspecified', 'Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList'];

export interface TemporalTarget {
  readonly address: string;
  readonly namespace: string;
}

/** Whether Temporal answers, and the namespace is as Posthorn needs it. */
export async function checkTemporal(target: TemporalTarget): Promise<readonly Finding[]> {
  const { address } = target;
  let connection: Connection;
  try {
    connection = await Connection.connect({ address, connectTimeout: TIMEOUT_MS });
  } catch (error) {
    return [
      fail(
        `Temporal ${address} can't be reached: ${describeError(error)}`,
        'Start it, or correct TEMPORAL_ADDRESS; unset it to use the embedded one.',
      ),
    ];
  }
  try {
    return await connection.withDeadline(Date.now() + 2 * TIMEOUT_MS, async () => {
      const { serverVersion } = await connection.workflowService.getSystemInfo({});
      return [ok(`Temporal ${address}: server ${serverVersion}`), ...(await checkNamespace(connection, target))];
    });
  } catch (error) {
    return [fail(`Temporal ${address} refuses to answer: ${describeError(error)}`, 'Look into its log.')];
  } finally {
    await connection.close();
  }
}

async function checkNamespace(connection: Connection, { address, namespace }: TemporalTarget): Promise<Finding[]> {
  const flags = `--address ${address} --namespace ${namespace}`;
  try {
    const { config } = await connection.workflowService.describeNamespace({ namespace });
    const days = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) / DAY_SECONDS;
    const retention = `Namespace '${namespace}' keeps closed workflows for ${Number(days.toFixed(1))} days`;
    return [
      ok(`Namespace '${namespace}' exists`),
      days >= WANTED_RETENTION_DAYS
        ? ok(retention)
        : warn(
            `${retention}: a dead letter of 30 days could not be looked at in the Web UI to its end`,
            `temporal operator namespace update ${flags} --retention ${WANTED_RETENTION_DAYS}d`,
          ),
      ...(await checkSearchAttributes(connection, namespace, flags)),
    ];
  } catch (error) {
    if (!isGrpcServiceError(error) || (error.code as number) !== NOT_FOUND) throw error;
    return [
      fail(
        `Namespace '${namespace}' does not exist`,
        `temporal operator namespace create ${flags} --retention ${WANTED_RETENTION_DAYS}d, or correct TEMPORAL_NAMESPACE.`,
      ),
    ];
  }
}

async function checkSearchAttributes(connection: Connection, namespace: string, flags: string): Promise<Finding[]> {
  let custom: Record<string, unknown>;
  try {
    custom = (await connection.operatorService.listSearchAttributes({ namespace })).customAttributes ?? {};
  } catch (error) {
    return [
      warn(
        `Search attributes could not be listed: ${describeError(error)}`,
        'Check by hand that they exist as Keyword.',
      ),
    ];
  }
  const names = Object.values(searchAttributes);
  const wrong = names.filter((name) => name in custom && Number(custom[name]) !== KEYWORD);
  const missing = names.filter((name) => !(name in custom));
  if (wrong.length > 0) {
    return wrong.map((name) =>
      fail(
        `Search attribute ${name} is of type ${valueTypes[Number(custom[name])] ?? 'unknown'}, not Keyword`,
        `temporal operator search-attribute remove ${flags} --name ${name} --yes\n` +
          `temporal operator search-attribute create ${flags} --name ${name} --type Keyword`,
      ),
    );
  }
  if (missing.length === 0) return [ok(`Search attributes ${names.join(', ')} are of type Keyword`)];
  return [ok(`Search attributes ${missing.join(', ')} are missing: Posthorn registers them when it starts`)];
}

const describeError = (error: unknown): string =>
  isGrpcServiceError(error) ? error.details || error.message : error instanceof Error ? error.message : String(error);
