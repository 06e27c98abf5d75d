/** One worker on DBOS. Any number of them may run, on any number of machines. @module */
import { createRuntime } from 'effectmatch';
import { openWorkflows } from 'effectmatch/workflow';
import { type DbosApi, dbosEngine } from 'effectmatch/workflow/dbos';
import { configOf, monthEnd } from './office.ts';

const { folder, url, publicKey } = JSON.parse(process.argv[2] ?? '') as Record<string, string>;
// An application imports the class DBOS of @dbos-inc/dbos-sdk.
const sdk = new URL(
  '../../integrations/dbos/node_modules/@dbos-inc/dbos-sdk/dist/src/index.js',
  import.meta.url,
);
const { DBOS } = (await import(sdk.href)) as { readonly DBOS: DbosApi };

const config = configOf(folder ?? '', publicKey ?? '');
const runtime = await createRuntime(config);
await openWorkflows({
  runtime,
  operations: config.operations,
  plans: { 'month-end': monthEnd },
  engine: dbosEngine({ DBOS, url: url ?? '', heartbeatMs: 300, silentMs: 1500, lookMs: 300 }),
});
process.send?.('ready');
