import { Connection } from '@temporalio/client';

const ATTEMPT_TIMEOUT_MS = 2_000;
const PAUSE_MS = 100;

/** True once the frontend answers and knows the namespace; false at the deadline or when `goOn` says no. */
export async function waitForFrontend(options: {
  readonly address: string;
  readonly namespace: string;
  readonly timeoutMs: number;
  readonly goOn?: () => boolean;
}): Promise<boolean> {
  const { address, namespace, timeoutMs, goOn = () => true } = options;
  const deadline = Date.now() + timeoutMs;
  while (goOn() && Date.now() < deadline) {
    try {
      const connection = await Connection.connect({ address, connectTimeout: ATTEMPT_TIMEOUT_MS });
      try {
        await connection.withDeadline(Date.now() + ATTEMPT_TIMEOUT_MS, () =>
          connection.workflowService.describeNamespace({ namespace }),
        );
        // An answer on this port proves nothing when our own process is gone.
        return goOn();
      } finally {
        await connection.close();
      }
    } catch {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
  return false;
}
