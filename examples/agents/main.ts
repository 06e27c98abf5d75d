/**
 * An agent pays an invoice through a framework. Start it with `npm run example -- agents ai-sdk`.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chapter, expectDurable, openWorkplace, tell } from '../story.ts';
import { serveModel } from './model.ts';
import { type Converse, openOffice, TASK } from './office.ts';

const NAMES = ['loop', 'ai-sdk', 'openai-agents', 'langchain', 'mastra'];
const CALL = {
  name: 'sql_books',
  input: {
    sql: 'insert into payment (payee, amount) values (?, ?) returning id',
    values: ['globex', 35],
    reason: 'invoice 4711 is due',
  },
};

/** The example of a framework; its packages are installed if they are not there yet. */
async function load(name: string): Promise<Converse> {
  if (name === 'loop') return (await import('./loop.ts')).converse;
  const folder = join(import.meta.dirname, '../../integrations', name);
  if (!existsSync(join(folder, 'node_modules'))) {
    console.log(`installing the packages of integrations/${name}`);
    const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    const { status } = spawnSync('npm', words, { cwd: folder, stdio: 'inherit' });
    if (status !== 0) process.exit(1);
  }
  return (await import(join(folder, 'example.ts'))).converse as Converse;
}

using workplace = openWorkplace();
const name = process.argv.slice(2).find((word) => NAMES.includes(word)) ?? 'loop';
const { OPENAI_BASE_URL, OPENAI_API_KEY = '', OPENAI_MODEL = 'scripted' } = process.env;
const converse = await load(name);
using model = OPENAI_BASE_URL === undefined ? await serveModel(CALL) : undefined;
const baseUrl = model?.baseUrl ?? OPENAI_BASE_URL ?? '';
const apiKey = OPENAI_API_KEY || 'none';

chapter(`An agent with ${name}${model ? ', and a script that stands in for its model' : ''}`);
await using office = await openOffice(workplace.folder);
tell('task', TASK);
const said = await converse(office, { baseUrl, apiKey, model: OPENAI_MODEL });
tell('agent', said);
if (model === undefined) tell('database', office.payments().join('\n'));
else expectDurable('database', office.payments(), ['globex: 35']);
