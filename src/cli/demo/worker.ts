/**
 * A separate process that pays, and is killed after the commit and before it records its verdict.
 *
 * @module
 */
import { createRuntime } from '../../runtime/runtime.ts';
import { configOf, PAYING } from './invoice.ts';

const [folder = '', publicKey = '', license = ''] = process.argv.slice(2);
const runtime = await createRuntime(configOf(folder, publicKey), {
  reached(step) {
    if (step === 'path:promoted') process.kill(process.pid, 'SIGKILL');
  },
});
await runtime.execute(license, PAYING);
