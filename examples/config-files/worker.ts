/**
 * A process that is killed at the worst moment: its change is committed, and nobody was told. It gets the folder and a
 * license, executes, and dies by SIGKILL between the commit and the switch of the folder.
 *
 * @module
 */
import { createRuntime } from 'effectmatch';
import type { AdapterFactory } from 'effectmatch/contract';
import { Deployment } from './deployment.ts';

const [folder = '', license = '', action = ''] = process.argv.slice(2);
const { config } = new Deployment(folder);
const adapters = Object.entries(config.adapters).map(([name, factory]) => [name, killedAfterCommit(factory)]);
const runtime = await createRuntime({ ...config, adapters: Object.fromEntries(adapters) });
await runtime.execute(license, JSON.parse(action));

/** The same adapter. It reports its steps to whoever opens it, which is how a test or an example can stop it there. */
function killedAfterCommit(factory: AdapterFactory): AdapterFactory {
  return {
    open: (context) =>
      factory.open({
        ...context,
        reached(step) {
          if (step === 'adapter:commit-returned') process.kill(process.pid, 'SIGKILL');
        },
      }),
  };
}
