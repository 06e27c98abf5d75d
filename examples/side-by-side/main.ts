/**
 * One statement through two MCP servers. Start it with `npm run example -- side-by-side`.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime } from 'effectmatch';
import { chapter, expectDurable, openWorkplace, tell } from '../story.ts';
import { createBooks, readBooks, STATEMENT } from './books.ts';
import { drawPicture } from './picture.ts';
import { command, openDbhub, openEffectmatch } from './servers.ts';

using workplace = openWorkplace();
const { folder } = workplace;
const at = (name: string) => join(folder, name);
const BEFORE = ['invoice 4711   open', 'globex         balance 100', 'reminder       disputed'];

chapter('1. DBHub');
createBooks(at('dbhub.db'));
const dbhub = await openDbhub(at('dbhub.db'));
tell('agent', STATEMENT);
const ran = await dbhub.callTool({ name: 'execute_sql', arguments: { sql: STATEMENT } });
await dbhub.close();
const { success, data } = JSON.parse(textOf(ran));
const { count } = data.statements[0];
const theirs = `success: ${success}, count: ${count}`;
tell('answer', theirs);
const after = readBooks(at('dbhub.db'));
expectDurable('database', after, [
  'invoice 4711   paid',
  'globex         balance 65',
  'reminder       gone',
]);

chapter('2. EffectMatch');
createBooks(at('books.db'));
writeFileSync(at('alice.json'), command(folder, ['keygen', 'alice', '--json']));
process.env.SIDE_BY_SIDE = folder;
const { default: config } = await import('./effectmatch.config.ts');
await (await createRuntime(config)).close(); // the first start makes the keyring and the ledger
const effectmatch = await openEffectmatch(folder);
const call = { name: 'mark-paid', arguments: { input: { invoice: 4711 } } };
const asked = (await effectmatch.callTool(call)).structuredContent as Answer;
tell('agent', `${call.name} ${JSON.stringify(call.arguments.input)}, which runs ${STATEMENT}`);
tell('answer', asked.status);
tell('to approve', asked.rendering ?? '');
expectDurable('database', readBooks(at('books.db')), BEFORE);
command(folder, ['approve', '--request', asked.request, '--key', at('alice.key.json'), '--yes']);
tell('alice', 'approved: the invoice, and nothing else');
const waiting = { request: asked.request, waitSeconds: 30 };
const status = { name: 'request_status', arguments: waiting };
const verdict = (await effectmatch.callTool(status)).structuredContent as Answer;
await effectmatch.close();
tell('answer', verdict.status);
tell('why', verdict.diff ?? '');
expectDurable('database', readBooks(at('books.db')), BEFORE);
assert.equal(verdict.status, 'rejected');
for (const named of ['balance', 'reminder']) assert.ok(verdict.diff?.includes(named), named);

const picture = drawPicture({
  statement: STATEMENT,
  theirs: { answer: theirs, database: after },
  ours: { status: verdict.status, diff: verdict.diff ?? '', database: BEFORE },
});
writeFileSync(at('side-by-side.svg'), picture);

interface Answer {
  readonly status: string;
  readonly request: string;
  readonly rendering?: string;
  readonly diff?: string;
}

function textOf(result: { readonly content: readonly { readonly type: string }[] }): string {
  const [first] = result.content as readonly { readonly text?: string }[];
  return first?.text ?? '';
}
