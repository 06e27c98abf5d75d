// Goal: a tool of another MCP server is called at most once for a license, and judged by what its
// reading tools tell; after the call nothing is called rejected. Method: a real upstream process
// that crashes, hangs, floods and lies as told; real SIGKILL; the gateway with an MCP client.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type McpOperation, opaqueMcp } from '../../src/adapters/mcp/index.ts';
import { readAnswer } from '../../src/adapters/mcp/read-back.ts';
import type { Runtime, UpstreamConfig } from '../../src/index.ts';
import { renderTerminal } from '../../src/protocol/render-terminal.ts';
import { adding, addNote, definitionsOf, NotesDesk, notesOptions, serverOf } from './notes.ts';
import { call, Office } from './office.ts';

const CALLER = fileURLToPath(new URL('./killed-caller.ts', import.meta.url));
const desk = new NotesDesk();
after(() => desk[Symbol.dispose]());
const definitions = await definitionsOf(desk.folder);

/** One execution while the server does this. */
interface Case {
  readonly verdict: 'committed' | 'diverged' | 'indeterminate' | 'rejected';
  readonly calls: 0 | 1;
  /** How many notes are there afterwards. */
  readonly notes: number;
  /** What recovery says once the server behaves. */
  readonly recovered?: 'committed' | 'unresolved';
}

const CASES: Readonly<Record<string, Case>> = {
  nothing: { verdict: 'committed', calls: 1, notes: 1 },
  lie: { verdict: 'committed', calls: 1, notes: 1 },
  wrong: { verdict: 'diverged', calls: 1, notes: 1 },
  twice: { verdict: 'diverged', calls: 1, notes: 2 },
  'crash-before': { verdict: 'indeterminate', calls: 1, notes: 0, recovered: 'unresolved' },
  'crash-after': { verdict: 'committed', calls: 1, notes: 1 },
  'crash-and-mute': { verdict: 'indeterminate', calls: 1, notes: 1, recovered: 'committed' },
  'hang-after': { verdict: 'committed', calls: 1, notes: 1 },
  mute: { verdict: 'indeterminate', calls: 1, notes: 1, recovered: 'committed' },
  flood: { verdict: 'committed', calls: 1, notes: 1 },
  changed: { verdict: 'rejected', calls: 0, notes: 0 },
};

/** What recovery finds out about the attempt of a task. */
async function recover(runtime: Runtime, task: string): Promise<string | undefined> {
  const all = await runtime.recover({ now: true });
  const found = all.find((one) => one.task === task);
  return found?.kind === 'settled' ? found.terminal.kind : found?.kind;
}

test('one call for each license, and the verdict follows from what is read back', async () => {
  await using open = await desk.open(definitions);
  const { runtime, approve } = open;
  for (const [fault, expected] of Object.entries(CASES)) {
    const text = `a note while ${fault}`;
    const license = await approve(text);
    const before = { calls: desk.calls, notes: desk.notes.length };
    desk.misbehave(fault);
    const terminal = await runtime.execute(license, adding(text));
    desk.misbehave('nothing');
    const { calls, notes, verdict, recovered } = expected;
    assert.equal(terminal.kind, verdict, `${fault}: ${renderTerminal(terminal)}`);
    const again = await runtime.execute(license, adding(text));
    assert.equal(again.kind, 'rejected', `${fault}: a license is good for one call`);
    if (recovered !== undefined) assert.equal(await recover(runtime, text), recovered, fault);
    const done = { calls: desk.calls - before.calls, notes: desk.notes.length - before.notes };
    assert.deepEqual(done, { calls, notes }, fault);
  }
});

test('a server that cannot be started, and input that is not let through, call nothing', async () => {
  await using open = await desk.open(definitions);
  const before = desk.calls;
  const license = await open.approve('first');
  const more = { operation: 'add', input: { text: 'first', reference: 'mine' } };
  const refused = await open.runtime.execute(license, more);
  assert.equal(refused.kind === 'rejected' && refused.reason, 'action-invalid');
  desk.misbehave('dead');
  const dead = await open.runtime.execute(license, adding('first'));
  desk.misbehave('nothing');
  assert.equal(dead.kind === 'rejected' && dead.reason, 'not-sent', renderTerminal(dead));
  assert.equal(desk.calls, before);
});

test('a call that was made is not called rejected, whatever the configuration says of it', async () => {
  const options = notesOptions(desk.folder, definitions);
  const { add } = options.operations;
  const found = () => ({ records: [], refused: 'it did nothing' });
  const operation = { ...add, readBack: { ...add?.readBack, found } } as McpOperation;
  const notes = opaqueMcp({ ...options, operations: { add: operation } });
  await using open = await desk.open(definitions, { adapters: { notes } });
  desk.misbehave('crash-before');
  const terminal = await open.runtime.execute(await open.approve('never'), adding('never'));
  desk.misbehave('nothing');
  assert.equal(terminal.kind, 'diverged', renderTerminal(terminal));
});

test('an answer is used as its structured content, or its only text, with all digits', () => {
  const text = (words: string) => ({ type: 'text' as const, text: words });
  const said = (result: object) => readAnswer('find', result as never);
  const read = (value: unknown) => ({ kind: 'read', value });
  assert.deepEqual(said({ content: [text('[1, "a"]')] }), read([1, 'a']));
  assert.deepEqual(said({ content: [text('none')] }), read('none'));
  const digits = '9007199254740993';
  assert.deepEqual(said({ content: [text(digits)] }), read({ $int: digits }));
  const structured = { content: [text('not this')], structuredContent: { id: 7 } };
  assert.deepEqual(said(structured), read({ id: 7 }));
  const silent = [
    { content: [text('[]')], isError: true },
    { content: [text('[]'), text('[]')] },
    { content: [] },
    { content: [], structuredContent: { id: 2 ** 53 } },
  ];
  for (const result of silent) assert.equal(said(result).kind, 'silent', JSON.stringify(result));
});

test('options that would skip a check are refused', async () => {
  const options = notesOptions(desk.folder, definitions);
  const { add } = options.operations;
  assert.ok(add !== undefined);
  const { reads } = add.readBack;
  const bad = [
    { ...options, server: {} },
    { ...options, operations: {} },
    { ...options, opertions: {} },
    { ...options, operations: { add: { ...add, tool: { name: 'add_note', definition: '' } } } },
    { ...options, operations: { add: { ...add, readBack: { ...add.readBack, reads: {} } } } },
    { ...options, operations: { add: { ...add, readBack: { ...add.readBack, covers: [] } } } },
    {
      ...options,
      operations: {
        add: {
          ...add,
          readBack: { ...add.readBack, reads: { notes: { ...reads.notes, tool: add.tool } } },
        },
      },
    },
  ];
  const context = { leaseMs: 30_000 } as never;
  for (const wrong of bad)
    await assert.rejects(opaqueMcp(wrong as never).open(context), {
      code: 'ERR_EM_ADAPTER_REFUSED',
    });
  const slow = { ...options, server: { ...options.server, timeoutMs: 30_000 } };
  await assert.rejects(opaqueMcp(slow).open(context), { code: 'ERR_EM_CONFIG_INVALID' });
});

test('a process killed before, between and after: nothing is called a second time', async () => {
  const steps = {
    'path:request-built': ['rejected', 0],
    'adapter:connected': ['unresolved', 0],
    'adapter:response-read': ['committed', 1],
    'path:read-back': ['committed', 1],
  } as const;
  await using open = await desk.open(definitions);
  for (const [step, [verdict, calls]] of Object.entries(steps)) {
    const text = `killed at ${step}`;
    const license = await open.approve(text);
    const before = desk.calls;
    const job = { definitions, publicKey: desk.publicKey, license, text, step };
    writeFileSync(join(desk.folder, 'job.json'), JSON.stringify(job));
    const caller = spawn(process.execPath, ['--no-warnings', CALLER, desk.folder]);
    const [, signal] = await once(caller, 'exit');
    assert.equal(signal, 'SIGKILL', step);
    assert.equal(await recover(open.runtime, text), verdict, step);
    assert.equal((await open.runtime.execute(license, adding(text))).kind, 'rejected');
    assert.equal(desk.calls - before, calls, step);
  }
});

test('through the gateway the tool keeps its name, and is called once it is approved', async () => {
  using office = new Office({ upstreams: ['notes'] });
  using own = new NotesDesk(office.folder);
  const { adapters, issuers, operations } = office.config;
  const upstream: UpstreamConfig = {
    ...serverOf(office.folder),
    tools: {
      add_note: { write: definitions.add_note, operation: 'add_note' },
      find_notes: { read: definitions.find_notes },
    },
  };
  const more = {
    leaseMs: 30_000,
    issuers: { alice: { ...issuers.alice, may: ['books', 'notes'] } },
    adapters: { ...adapters, notes: opaqueMcp(notesOptions(office.folder, definitions)) },
    operations: { ...operations, add_note: addNote },
    upstreams: { notes: upstream },
  } as never;
  await using host = await office.startHttp(() => {}, more);
  await using client = await office.connectHttp(host.url, '2026-07-28');
  const asked = await call(client, 'add_note', { text: 'hello' });
  assert.equal(asked.status, 'approval-required', JSON.stringify(asked));
  assert.deepEqual([own.calls, own.notes], [0, []], 'nothing was called without a license');
  const { proposal } = await host.requests.get(asked.request ?? '');
  assert.match(proposal.rendering, /no promise of rollback/);
  const license = office.alice.sign(proposal, { expiresIn: '10m' });
  await host.requests.answer(asked.request ?? '', license);
  const waiting = { request: asked.request, waitSeconds: 20 };
  const done = await call(client, 'request_status', waiting);
  assert.equal(done.status, 'committed', JSON.stringify(done));
  assert.deepEqual([own.calls, own.notes], [1, ['hello']]);
});
