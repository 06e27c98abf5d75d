// node worker.ts <folder>: runs the workflow of a case file in a separate process.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CASE_FILE, type Case, play } from './run.ts';

const [folder = ''] = process.argv.slice(2);
const given = JSON.parse(readFileSync(join(folder, CASE_FILE), 'utf8')) as Case;
await play(given);
