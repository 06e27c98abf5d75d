// node reader.ts <folder> <as-saved or recover>: a fresh worker that asks whether the dependent work may run.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { digestRecord, occurrenceId } from '../../../src/crypto/digest.ts';
import { licenseRecord } from '../../../src/protocol/license.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { CONTINUATION, RELEASES, readCase } from './case-file.ts';

const [folder = '', mode = 'as-saved'] = process.argv.slice(2);
const { config, license } = readCase(folder);
await using runtime = await createRuntime({ ...config, recoverAtStart: false });
if (mode === 'recover') await runtime.recover({ now: true });
const { issuer, nonce } = license.license;
const lineage = digestRecord(licenseRecord, license.license);
const occurrence = occurrenceId({ issuer, nonce, license: lineage, index: 0 });
const terminal = await runtime.terminal(occurrence);
const release = await runtime
  .continuation({ occurrence, lineage }, CONTINUATION)
  .release(() => appendFileSync(join(folder, RELEASES), `${process.pid}\n`));
console.log(JSON.stringify({ terminal: terminal?.kind ?? null, release: release.kind }));
