// One process of a host: begins a run or goes on with one, tells how far it got, and waits for its
// end.
import { openDesk } from '../desk.ts';
import type { ScriptedCall } from './driver.ts';
import { loadDriver } from './install.ts';

const {
  driver: name,
  facts,
  call,
  state,
} = JSON.parse(process.argv[2] ?? '{}') as {
  readonly driver: string;
  readonly facts: Parameters<typeof openDesk>[0];
  readonly call: ScriptedCall;
  readonly state?: string;
};
const driver = await loadDriver(name);
const { tools } = await openDesk(facts);
process.send?.('ready');
process.on('message', async () => {
  const turn =
    state === undefined
      ? await driver.begin(tools, call, 'whole')
      : await driver.sayYes(tools, state, 'whole');
  process.send?.(turn);
});
