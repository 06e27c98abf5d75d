// One worker of a deployment on DBOS, as a process that a test may kill or pause.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type OfficeFacts, officeConfig } from '../../bench/studies/topologies/office.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { type DbosApi, dbosEngine } from '../../src/workflow/dbos.ts';
import { openWorkflows } from '../../src/workflow/index.ts';
import { integration } from '../integration.ts';
import { sitePlans } from './dbos-plans.ts';

/** Few, so that tests see what happens when all places are taken. */
const RUNS = 2;

const { facts, url } = JSON.parse(process.argv[2] ?? '') as {
  readonly facts: OfficeFacts;
  readonly url: string;
};
const sdk = join(integration('dbos'), 'node_modules/@dbos-inc/dbos-sdk/dist/src/index.js');
const { DBOS } = (await import(pathToFileURL(sdk).href)) as { readonly DBOS: DbosApi };
const config = officeConfig(facts);
const runtime = await createRuntime(config);
const workflows = await openWorkflows({
  runtime,
  operations: config.operations,
  plans: sitePlans(facts.folder),
  engine: dbosEngine({
    ...{ DBOS, url, worker: `worker-${process.pid}` },
    ...{ heartbeatMs: 200, silentMs: 1000, lookMs: 300, runs: RUNS },
  }),
  onFault: (run, error) => process.send?.({ fault: `${run}: ${String(error)}` }),
});
process.send?.({ ready: true });
process.on('disconnect', async () => {
  await workflows.close();
  await runtime.close();
  process.exit();
});
