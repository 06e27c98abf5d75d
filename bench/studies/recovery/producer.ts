// node producer.ts <folder> <step or ->: executes the case in a separate process, which is killed
// at the step.
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { readCase } from './case-file.ts';

const [folder = '', exitAt = '-'] = process.argv.slice(2);
const { config, license, action } = readCase(folder);
// Admission takes some of the same steps with a probe.
let isExecuting = false;
await using runtime = await createRuntime(config, {
  reached: (step) => {
    if (step === exitAt && isExecuting) process.kill(process.pid, 'SIGKILL');
  },
});
isExecuting = true;
await runtime.execute(license, action);
