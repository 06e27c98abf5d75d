// Executes the license that lies in a folder, and kills itself at a step. Its own process, because
// it dies for real.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createRuntime, type RuntimeConfig } from '../../src/runtime/runtime.ts';
import { paying } from './payments.ts';

const [folder = '', id = '', fatal = ''] = process.argv.slice(2);
process.chdir(folder);
const { default: config } = (await import(
  pathToFileURL(join(folder, 'effectmatch.config.ts')).href
)) as {
  default: RuntimeConfig;
};
const runtime = await createRuntime(
  { ...config, recoverAtStart: false },
  {
    reached(step) {
      if (step === fatal) process.kill(process.pid, 'SIGKILL');
    },
  },
);
await runtime.execute(readFileSync(join(folder, 'license.json'), 'utf8'), paying(Number(id)));
