// A console of a deployment with a workflow: one run that waits, one that stopped half-way.
import { join } from 'node:path';
import { type ConsoleApp, createConsole } from '../../src/console/app.ts';
import { openRequests } from '../../src/requests/index.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { defineWorkflow } from '../../src/workflow/index.ts';
import { Desk, type Opened, openFlow } from '../workflow/desk.ts';

/** The console, and the processes behind it. */
export interface Fan extends AsyncDisposable {
  readonly app: ConsoleApp;
  readonly workflows: Opened['workflows'];
  /** Starts both runs, signs one of them and drives it until it stops. */
  run(): Promise<void>;
}

/** Opens it at this origin. */
export async function openFan(origin: string): Promise<Fan> {
  await using parts = new AsyncDisposableStack();
  const desk = parts.use(new Desk());
  const flow = parts.use(await openFlow(desk, [FAN], { engine: IDLE }));
  const { runtime, workflows } = flow;
  const store = join(desk.folder, 'requests.db');
  const requests = parts.use(await openRequests({ runtime, store }));
  const options = { runtime, requests, adapters: [], issuers: {}, user: 'carol', origin };
  const app = parts.use(createConsole(options));
  const opened = parts.move();
  return {
    ...{ app, workflows },
    async run() {
      for (const id of ['waits', 'stops']) await workflows.start('fan', { id, input: id });
      await workflows.approve('stops', await flow.sign('stops'));
      await workflows.drive('stops');
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const post = (name: string, after: readonly string[] = []) => ({
  operation: 'post',
  after,
  input: ({ input }: { readonly input: unknown }) => ({
    tag: `${input}.${name}`,
    amount: input === 'stops' && name === 'right' ? 666 : 1,
  }),
});
const FAN = defineWorkflow('fan', {
  start: post('start'),
  left: post('left', ['start']),
  right: post('right', ['start']),
  end: post('end', ['start', 'left', 'right']),
});
