// Executes one license on the notes of a folder, and kills itself at one step.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { adding, NotesDesk } from './notes.ts';

const [, , folder = ''] = process.argv;
const job = JSON.parse(readFileSync(join(folder, 'job.json'), 'utf8'));
const config = new NotesDesk(folder).config(job.definitions, job.publicKey);
const reached = (step: string) => {
  if (step === job.step) process.kill(process.pid, 'SIGKILL');
};
const runtime = await createRuntime(config, { reached });
await runtime.execute(job.license, adding(job.text));
