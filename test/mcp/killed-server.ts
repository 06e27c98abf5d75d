// A server over stdio that kills itself at one step, named by the environment.
import { openAgentServers, serveAgentOnStdio } from '../../src/mcp/index.ts';
import { openRequests } from '../../src/requests/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { configFor } from './deployment.ts';

const { OFFICE = '', KILL_AT = '' } = process.env;
const config = configFor(OFFICE);
let isServing = false; // Opening an adapter takes some of the steps, too.
const die = (step: string) => {
  if (isServing && step === KILL_AT) process.kill(process.pid, 'SIGKILL');
};
const runtime = await createRuntime(config, { reached: die });
const { store = '' } = config.requests ?? {};
const requests = await openRequests({ runtime, store, operations: config.operations ?? {} });
requests.start();
const log = (line: string) => die(line.replace(/ req_.*/, ''));
const onFault = () => {};
const servers = openAgentServers({
  ...{ config, runtime, requests, run: 'mcp', version: '0.0.0', log, onFault },
});
isServing = true;
const signal = new AbortController().signal;
await serveAgentOnStdio(servers, 'clerk', { signal, onError: () => {} });
process.exit();
