import { afterAll, beforeAll, expect, it } from 'vitest';
import { WorkflowEngine } from '../support/workflow-engine.js';
import { until } from '../support/posthorn.js';
let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start()));
afterAll(() => engine.stop());
it('signal', async () => {
    const delivery = engine.model.add([500, 500]);
    const handle = await engine.dispatch(delivery);
    await until('waits', async () => delivery.row.status === 'retrying');
    await handle.signal('cancel');
    console.log(await engine.ending(delivery.id));
    console.log((await handle.fetchHistory()).events?.map(e=>Object.keys(e).join(' ')).join('\n'));
});
it('six', async () => {
    const delivery = engine.model.add([200]);
    const handle = await engine.dispatch(delivery);
    console.log(await engine.ending(delivery.id));
    console.log((await handle.fetchHistory()).events?.map(e=>Object.keys(e).join(' ')).join('\n'));
});
