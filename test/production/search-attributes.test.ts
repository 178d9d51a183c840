import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createNamespace, RecordingReceiver, until } from '../support/posthorn.js';
import { ProductionProcesses, runTemporalCli, withTemporalClient } from '../support/production-processes.js';

let processes: ProductionProcesses;
let receiver: RecordingReceiver;

beforeAll(async () => {
  const namespace = await createNamespace(inject('temporalAddress'));
  const command = `operator search-attribute create --namespace ${namespace} --name PosthornEndpointId --type Int`;
  runTemporalCli(command.split(' '));
  processes = await ProductionProcesses.prepare({ namespace });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await processes.stop();
  await receiver.stop();
});

describe('a search attribute that exists with another type', () => {
  it('keeps a worker from starting, until the command that it prints has been run', async () => {
    const refused = processes.spawn('worker');
    const [code] = (await once(refused, 'exit')) as [number | null];
    expect(code).toBe(1);
    const { namespace } = processes;
    expect(refused.output()).toContain('another type than Keyword: PosthornEndpointId');
    const command = /^\s*temporal (.+)$/m.exec(refused.output())?.[1];
    expect(command).toBe(`operator search-attribute remove --namespace ${namespace} --name PosthornEndpointId --yes`);

    runTemporalCli(command!.split(' '));
    await processes.startWorker();
    const { client: api } = await processes.startApi();
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['*']);
    const { deliveries } = await api.publish('repaired.now');
    await until('it is delivered', async () => (await api.delivery(deliveries[0]!.id, '10s')).status === 'succeeded');
    await withTemporalClient(namespace, async (client) => {
      await until('it is found by its endpoint', async () => {
        const { count } = await client.workflow.count(`PosthornEndpointId = "${endpointId}"`);
        return count === 1;
      });
    });
  });
});
