// Goal: a change of an issue is released only when its registered fields are as approved when they
// are read back, by who asked for as much; changes by others and read-backs that fail block it, and
// neither is blamed on our request. Method: eight shapes of operations against a stateful emulator
// of GitHub behind a server that makes trouble, five times each; the emulator is read directly to
// see what is really there.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createEmulator, type Emulator } from 'emulate';
import { github } from '../../../src/adapters/github/index.ts';
import { readIssue } from '../../../src/adapters/github/issue.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { type DraftChanges, generated, insert, to, update } from '../../../src/protocol/draft.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { type FaultServer, startFaultServer, type Trouble } from './fault-server.ts';

const TOKEN = 'gh-token-5c1d9e70';
const OTHER = 'gh-other-31fa';
const ISSUES = '/repos/octocat/hello/issues';
const REPETITIONS = 5;
const key = generateApprover('maintainers');
const signer = approver(key);
const folder = mkdtempSync(join(tmpdir(), 'effectmatch-github-'));
let emulator: Emulator;
let server: FaultServer;
let runtime: Runtime;
let tasks = 0;

interface Issue {
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly state: string;
}

/** A request of somebody else, straight to the emulator. */
async function call(method: string, path: string, body?: object, token = OTHER): Promise<Issue> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(`${emulator.url}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return (await response.json()) as Issue;
}

const configOf = (url: string) => ({
  store: join(folder, 'ledger.db'),
  keyring: join(folder, 'keys.json'),
  issuers: { maintainers: { key: key.publicKey, may: ['tracker'] } },
  adapters: {
    tracker: github({ owner: 'octocat', repo: 'hello', token: TOKEN, url, timeoutMs: 5000 }),
  },
  recoverAtStart: false,
});

before(async () => {
  emulator = await createEmulator({
    service: 'github',
    port: 0,
    seed: {
      tokens: {
        [TOKEN]: { login: 'octocat', scopes: ['repo'] },
        [OTHER]: { login: 'octocat', scopes: ['repo'] },
      },
      github: { users: [{ login: 'octocat' }], repos: [{ owner: 'octocat', name: 'hello' }] },
    },
  });
  server = await startFaultServer(
    emulator.url,
    async (path) => void (await call('PATCH', path, { title: 'taken over' })),
  );
  runtime = await createRuntime(configOf(server.origin));
});

after(async () => {
  await runtime.close();
  await server[Symbol.asyncDispose]();
  await emulator.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A change of an issue that starts in this state. */
interface Shape {
  readonly from?: 'open' | 'closed';
  readonly changes?: DraftChanges;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  create: {},
  retitle: { from: 'open', changes: { title: ['before', 'after'] } },
  rebody: { from: 'open', changes: { body: ['text', 'other text'] } },
  close: { from: 'open', changes: { state: ['open', 'closed'] } },
  reopen: { from: 'closed', changes: { state: ['closed', 'open'] } },
  'title+body': { from: 'open', changes: { title: 'after', body: 'other text' } },
  'body+close': { from: 'open', changes: { body: 'other text', state: 'closed' } },
  'reopen+body': { from: 'closed', changes: { state: 'open', body: 'other text' } },
};

/** An approval for the shape, on an issue of its own. */
async function planOf(shape: Shape): Promise<PrepareRequest> {
  tasks += 1;
  const base = {
    adapter: 'tracker',
    task: `change ${tasks}`,
    planRevision: 1,
    continuations: ['notify', 'archive'],
  };
  const common = { ...base, fieldMatch: ['notify'] };
  if (shape.changes === undefined) {
    const row = {
      number: generated('issue'),
      title: 'new',
      body: 'text',
      labels: ['bug'],
      assignees: ['octocat'],
    };
    return { ...common, effects: [insert('issue', row)] };
  }
  const { number } = await call('POST', ISSUES, {
    title: 'before',
    body: 'text',
    labels: ['bug', 'a'],
  });
  if (shape.from === 'closed') await call('PATCH', `${ISSUES}/${number}`, { state: 'closed' });
  return { ...common, effects: [update('issue', { number }, shape.changes)] };
}

async function run(request: PrepareRequest) {
  const license = signer.sign(await runtime.prepare(request), { expiresIn: '10m' });
  const writes = server.writes;
  const terminal = await runtime.execute(license, {});
  assert.equal(server.writes - writes, 1, 'one execution is one write');
  return terminal;
}

const CONDITIONS: Readonly<Record<string, { readonly trouble: Trouble; readonly kind: string }>> = {
  clean: { trouble: 'none', kind: 'committed' },
  'an out-of-band title change': { trouble: 'out-of-band', kind: 'diverged' },
  'no read-back': { trouble: 'no-read-back', kind: 'indeterminate' },
};

for (const [condition, { trouble, kind }] of Object.entries(CONDITIONS)) {
  test(`${condition}: 8 shapes, ${REPETITIONS} times each, are ${kind}`, async () => {
    let right = 0;
    for (const [name, shape] of Object.entries(SHAPES)) {
      for (let times = 0; times < REPETITIONS; times += 1) {
        const request = await planOf(shape);
        server.trouble = trouble;
        const terminal = await run(request);
        server.heal();
        assert.equal(terminal.kind, kind, `${name}: ${renderTerminal(terminal)}`);
        const cautious = await runtime.continuation(terminal, 'archive').release(() => 'archived');
        const willing = await runtime.continuation(terminal, 'notify').release(() => 'notified');
        if (kind === 'committed') {
          assert.deepEqual(cautious, { kind: 'halted', why: 'field-match' });
          assert.deepEqual(willing, { kind: 'released', value: 'notified' });
        } else {
          assert.deepEqual([cautious, willing], Array(2).fill({ kind: 'halted', why: kind }));
        }
        right += 1;
      }
    }
    console.log(`${condition}: ${right}/${Object.keys(SHAPES).length * REPETITIONS} ${kind}`);
    assert.equal(right, 40);
  });
}

test('approver and verdict are told that fields match, and not who wrote them', async () => {
  const request = await planOf(SHAPES.retitle ?? {});
  const proposal = await runtime.prepare(request);
  assert.match(
    proposal.rendering,
    /Compared: the registered fields as read back afterwards; who wrote them is not/,
  );
  assert.match(proposal.rendering, /no promise of rollback/);
  assert.match(proposal.rendering, /Releases even if only the fields match: notify/);
  assert.match(
    proposal.rendering,
    /~ issue number=\d+ {2}assignees=\[\], body="text", labels=.*title="after"/,
  );
  server.trouble = 'out-of-band';
  const mismatch = await run(request);
  server.heal();
  assert.match(
    renderTerminal(mismatch),
    /^diverged: field mismatch: .* who changed them is not established/,
  );
  const clean = await run(await planOf(SHAPES.close ?? {}));
  assert.match(
    renderTerminal(clean),
    /^committed: the registered fields were as approved .* who wrote them is not/,
  );
});

test('labels and assignees are sets, and are changed like the other fields', async () => {
  const request = await planOf({
    from: 'open',
    changes: { labels: to(['z', 'a', 'z']), assignees: to(['octocat']) },
  });
  const terminal = await run(request);
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
});

test('what we create carries its occurrence, so that a lost answer is found without creating again', async () => {
  server.trouble = 'lost-after';
  const found = await run(await planOf({}));
  assert.equal(found.kind, 'committed', renderTerminal(found));
  const listed = (await call(
    'GET',
    `${ISSUES}?state=all&per_page=100`,
  )) as unknown as readonly Issue[];
  assert.equal(listed.filter(({ body }) => body?.includes(found.occurrence)).length, 1);

  server.trouble = 'lost-before';
  const lost = await run(await planOf({}));
  assert.equal(lost.kind, 'indeterminate');
  const writes = server.writes;
  server.heal();
  const results = await runtime.recover({ now: true });
  assert.equal(
    results.find(({ occurrence }) => occurrence === lost.occurrence)?.kind,
    'unresolved',
  );
  assert.equal(server.writes, writes);
});

test('a change whose answer is lost is committed if the fields match, and otherwise open, never a mismatch', async () => {
  server.trouble = 'lost-after';
  assert.equal((await run(await planOf(SHAPES.retitle ?? {}))).kind, 'committed');
  server.trouble = 'lost-before';
  const lost = await run(await planOf(SHAPES.retitle ?? {}));
  assert.equal(lost.kind, 'indeterminate');
  server.heal();
});

test('a read-back that comes back later settles the verdict by look-up, by another runtime too', async () => {
  server.trouble = 'no-read-back';
  const terminal = await run(await planOf({}));
  assert.equal(terminal.kind, 'indeterminate');
  server.heal();
  await using second = await createRuntime(configOf(server.origin));
  const results = await second.recover({ now: true });
  const settled = results.find(({ occurrence }) => occurrence === terminal.occurrence);
  assert.equal(settled?.kind === 'settled' && settled.terminal.kind, 'committed');
});

test('an issue that changed since approval is found before anything is sent', async () => {
  const request = await planOf(SHAPES.close ?? {});
  const license = signer.sign(await runtime.prepare(request), { expiresIn: '10m' });
  const number = request.effects[0]?.key?.number;
  assert.ok(number !== undefined && 'is' in number);
  await call('PATCH', `${ISSUES}/${number.is}`, { body: 'changed meanwhile' });
  const writes = server.writes;
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'precondition-broken');
  assert.equal(server.writes, writes);
});

test('what cannot be sent or compared cannot be approved', async () => {
  const { number } = await call('POST', ISSUES, { title: 'before', body: 'text' });
  const base = { adapter: 'tracker', task: 'refused', planRevision: 1 };
  const wrong = [
    [update('issue', { number }, { title: 'before' })],
    [update('issue', { number }, { title: ['not this', 'after'] })],
    [update('issue', { number }, { milestone: 1 })],
    [update('issue', { number }, { state: 'done' })],
    [update('issue', { number }, { title: ' blanks ' })],
    [update('issue', { number: 99_999 }, { title: 'x' })],
    [insert('issue', { number: 5, title: 'x' })],
    [insert('issue', { number: generated('n') })],
    [insert('issue', { number: generated('n'), title: 'x', state: 'closed' })],
    [insert('issue', { number: generated('n'), title: 'x', body: '<!-- effectmatch:occ_1 -->' })],
    [
      insert('issue', { number: generated('n'), title: 'x' }),
      insert('issue', { number: generated('m'), title: 'y' }),
    ],
    [insert('comment', { number: generated('n'), title: 'x' })],
  ];
  for (const effects of wrong) {
    await assert.rejects(runtime.prepare({ ...base, effects }), {
      code: 'ERR_EM_MANIFEST_INVALID',
    });
  }
  const nothing = signer.sign(await runtime.prepare({ ...base, effects: [] }), {
    expiresIn: '10m',
  });
  const refused = await runtime.execute(nothing, {});
  assert.equal(refused.kind === 'rejected' && refused.reason, 'request-impossible');
  await assert.rejects(
    runtime.prepare({ ...(await planOf({})), fieldMatch: ['nobody'] }),
    /fieldMatch names "nobody", which is not a continuation/,
  );
  const license = signer.sign(await runtime.prepare(await planOf({})), { expiresIn: '10m' });
  const misread = await runtime.execute(license, { title: 'mine' });
  assert.equal(misread.kind === 'rejected' && misread.reason, 'action-invalid');
});

test('the token is in no stored byte, and another repository is another backend', async () => {
  for (const name of ['ledger.db', 'ledger.db-wal']) {
    assert.ok(!readFileSync(join(folder, name)).includes(TOKEN), name);
  }
  const missing = { ...configOf(server.origin), store: join(folder, 'other.db') };
  const adapters = {
    tracker: github({ owner: 'octocat', repo: 'nowhere', token: TOKEN, url: server.origin }),
  };
  await assert.rejects(createRuntime({ ...missing, adapters }), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
  });
});

for (const change of ['token', 'lease'] as const) {
  test(`a write does not leave when its ${change} is not what its own final gate saw`, async () => {
    let token = TOKEN;
    let sleptMs = 0;
    const clock = {
      now: () => Date.now() - 2 * sleptMs,
      monotonic: () => performance.now() + sleptMs,
    };
    const reached = (step: Step) => {
      if (step !== (change === 'token' ? 'path:permit-consumed' : 'adapter:connected')) return;
      if (change === 'lease') sleptMs = 60_000;
      else token = OTHER;
      void own.survey('tracker');
    };
    const config = configOf(server.origin);
    const tracker = github({
      owner: 'octocat',
      repo: 'hello',
      token: () => token,
      url: server.origin,
      timeoutMs: 5000,
    });
    await using own: Runtime = await createRuntime(
      { ...config, adapters: { tracker } },
      { reached, clock },
    );
    const license = signer.sign(await own.prepare(await planOf({})), { expiresIn: '10m' });
    const writes = server.writes;
    const terminal = await own.execute(license, {});
    assert.equal(
      terminal.kind === 'rejected' && terminal.reason,
      'not-sent',
      renderTerminal(terminal),
    );
    assert.equal(server.writes, writes);
    await assert.rejects(createRuntime({ ...config, leaseMs: 5000 }), {
      code: 'ERR_EM_CONFIG_INVALID',
    });
  });
}

test('newlines at the end of a body are the body', async () => {
  const row = { number: generated('issue'), title: 'new', body: 'text\n\n\n' };
  const terminal = await run({ ...(await planOf({})), effects: [insert('issue', row)] });
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
});

test('a body of nothing but newlines is read as fast as any other', () => {
  const started = process.cpuUsage();
  const body = `${'\n'.repeat(65_000)}x`;
  const issue = readIssue({
    number: 1,
    title: 't',
    body,
    state: 'open',
    labels: [],
    assignees: [],
  });
  assert.equal(issue?.fields.body, body);
  // Trying every newline again takes 10 s.
  assert.ok(process.cpuUsage(started).user < 3_000_000);
});

/**
 * An execution that meets trouble, and the look-up of another process that follows after
 * `meanwhile`.
 */
async function lookUpLost(trouble: Trouble, meanwhile: (mark: string) => Promise<unknown>) {
  const request = await planOf({});
  server.trouble = trouble;
  const terminal = await run(request);
  await meanwhile(`<!-- effectmatch:${terminal.occurrence} -->`);
  server.heal();
  await using other = await createRuntime(configOf(server.origin));
  const results = await other.recover({ now: true });
  return results.find(({ occurrence }) => occurrence === terminal.occurrence);
}

test('a mark that somebody else wrote is no evidence that our request did something else', async () => {
  const forged = await lookUpLost('lost-before', (mark) =>
    call('POST', ISSUES, { title: 'forged', body: mark }),
  );
  assert.equal(forged?.kind, 'unresolved');
  const quoted = await lookUpLost('no-read-back', (mark) =>
    call('POST', ISSUES, { title: 'copy', body: `> text\n\n${mark}\n\nseen here` }),
  );
  assert.equal(quoted?.kind === 'settled' && quoted.terminal.kind, 'committed');
  const copied = await lookUpLost('no-read-back', (mark) =>
    call('POST', ISSUES, { title: 'copy', body: `text\n\n${mark}` }),
  );
  assert.equal(copied?.kind, 'unresolved');
});

test('long bodies of others do not keep recovery from finding ours', async () => {
  for (let issues = 0; issues < 30; issues += 1) {
    await call('POST', ISSUES, { title: 'long', body: 'x'.repeat(50_000) });
  }
  const found = await lookUpLost('no-read-back', async () => {});
  assert.equal(found?.kind === 'settled' && found.terminal.kind, 'committed');
});
