// Goal: two truthful readers of one outcome reach one verdict, even if they differ in columns that
// are not compared or that the approval leaves open. Method: a service on loopback that answers two
// read-backs together, each with other values in such columns.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { opaqueHttp } from '../../../src/adapters/http/index.ts';
import { any, insert, update } from '../../../src/protocol/draft.ts';
import type { ChangeRecord, Value } from '../../../src/protocol/index.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { type LoopbackServer, startLoopback } from '../../http/loopback.ts';
import { openRig, PAYMENT } from './rig.ts';

/** Answers read-backs two at a time, each with the next of the answers. */
function startBook(answers: readonly (readonly ChangeRecord[])[]): Promise<LoopbackServer> {
  const waiting: ServerResponse[] = [];
  return startLoopback((request, response) => {
    if (request.method !== 'GET') return void response.writeHead(201).end('{}');
    waiting.push(response);
    if (waiting.length < answers.length) return;
    for (const [index, reader] of waiting.splice(0).entries()) {
      reader.writeHead(200).end(JSON.stringify(answers[index]));
    }
  });
}

const bankAt = (url: string) =>
  opaqueHttp({
    service: { url, backend: 'book', credential: { header: 'x-key', value: 'secret' } },
    targets: {
      payment: { columns: ['id', 'payee', 'state', 'seen'], key: ['id'], volatile: ['seen'] },
    },
    operations: {
      pay: {
        method: 'POST',
        path: '/pay',
        input: (said) => said,
        request: (input) => ({ body: input }),
        readBack: {
          path: '/requests/{key}',
          found: (body: Value) => ({ records: body as unknown as readonly ChangeRecord[] }),
          covers: ['payment'],
        },
      },
    },
  });

const paid = (seen: number, state = 'new'): ChangeRecord => ({
  op: 'insert',
  target: 'payment',
  key: { id: 1 },
  before: null,
  after: { payee: 'acme', state, seen },
});
const touched = (from: number, to: number): ChangeRecord => ({
  op: 'update',
  target: 'payment',
  key: { id: 1 },
  before: { seen: from },
  after: { seen: to },
});
const approved = insert('payment', { id: 1, payee: 'acme', state: 'new', seen: null });
const open = insert('payment', { id: 1, payee: 'acme', state: any(), seen: null });
const renamed = update('payment', { id: 1 }, { payee: ['acme', 'globex'] });
const rename = (seen: number): ChangeRecord => ({
  op: 'update',
  target: 'payment',
  key: { id: 1 },
  before: { payee: 'acme', seen },
  after: { payee: 'globex', seen: seen + 1 },
});

const CASES = {
  'a volatile column': { effect: approved, answers: [[paid(1)], [paid(2)]] },
  'a volatile column of an update': { effect: renamed, answers: [[rename(1)], [rename(7)]] },
  'a row that was only touched': {
    effect: approved,
    answers: [[paid(1)], [paid(1), touched(1, 2), touched(2, 3)]],
  },
  'a column that may be anything': {
    effect: open,
    answers: [[paid(1, 'new')], [paid(1, 'settled')]],
  },
} as const;

for (const [name, { effect, answers }] of Object.entries(CASES)) {
  test(`an execution and a recovery that differ in ${name} agree`, async () => {
    await using rig = await openRig();
    await using book = await startBook(answers);
    const adapters = { bank: bankAt(book.origin) };
    const other = await rig.start({ adapters });
    let recovering: Promise<unknown> = Promise.resolve();
    const reached = (step: string) => {
      if (step === 'path:dispatched') recovering = other.recover({ now: true });
    };
    const runtime = await rig.start({ adapters }, { reached });
    const license = await rig.approve(runtime, { ...PAYMENT, effects: [effect] });
    const terminal = await runtime.execute(license, { operation: 'pay', input: {} });
    assert.equal(terminal.kind, 'committed');
    const [recovered] = (await recovering) as [
      { readonly kind: string; readonly terminal: Terminal },
    ];
    assert.equal(recovered.kind, 'settled', JSON.stringify(recovered));
    assert.equal(recovered.terminal.kind, 'committed');
    const stored = await other.terminal(terminal.occurrence);
    assert.deepEqual([terminal, recovered.terminal], [stored, stored]);
  });
}
