/**
 * A process that is killed at the worst moment: its change is committed, but the folder does not
 * show it yet. It gets the folder and a license, executes it, and kills itself with SIGKILL.
 *
 * @module
 */
import { createRuntime } from 'effectmatch';
import type { AdapterFactory } from 'effectmatch/contract';
import { Deployment } from './deployment.ts';

const [folder = '', license = '', action = ''] = process.argv.slice(2);
const { config } = new Deployment(folder);
const adapters = Object.entries(config.adapters).map(([name, factory]) => [
  name,
  killedAfterCommit(factory),
]);
const runtime = await createRuntime({ ...config, adapters: Object.fromEntries(adapters) });
await runtime.execute(license, JSON.parse(action));

/**
 * The same adapter. It reports its steps to the code that opens it, so a test or an example can
 * stop at one of them.
 */
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
