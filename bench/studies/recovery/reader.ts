// node reader.ts <folder> <as-saved or recover>: a fresh worker that asks whether the dependent
// work may run.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { CONTINUATION, RELEASES, readCase } from './case-file.ts';

const [folder = '', mode = 'as-saved'] = process.argv.slice(2);
const { config, license } = readCase(folder);
await using runtime = await createRuntime({ ...config, recoverAtStart: false });
if (mode === 'recover') await runtime.recover({ now: true });
const [origin] = lineagesOf(license);
const terminal = await runtime.terminal(origin.occurrence);
const release = await runtime
  .continuation(origin, CONTINUATION)
  .release(() => appendFileSync(join(folder, RELEASES), `${process.pid}\n`));
console.log(JSON.stringify({ terminal: terminal?.kind ?? null, release: release.kind }));
