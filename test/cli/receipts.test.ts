// Goal: somebody who has only a file and a public key learns whether to believe it, and an operator
// can give them both. Method: a real store with known verdicts, real processes; verification runs
// in an empty folder. Python verifies too.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { rotateKeyring } from '../../src/crypto/keyring.ts';
import { createSigner } from '../../src/crypto/receipt.ts';
import { receiptKeys } from '../../src/crypto/receipt-key.ts';
import { createRuntime, verifyReceipt } from '../../src/index.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { testKeyring } from '../keyring.ts';
import { Office, runCommand } from './command.ts';
import { makePayments, paying, proposePayment } from './payments.ts';

const office = new Office();
after(() => office[Symbol.dispose]());
const { committed, replayed, diverged, refused } = await makePayments(office);
/** Where the auditor sits: nothing is here but what was sent. */
const desk = office.subfolder('desk');
const at = (name: string) => join(desk, name);
const operate = (...args: string[]) => runCommand([...args], { cwd: office.folder });
const audit = (...args: string[]) => runCommand(['verify', ...args], { cwd: desk });

const [key, all] = await Promise.all([
  operate('export', '--public-key', '--out', at('receipts.pub')),
  operate('export', '--out', at('all.jsonl')),
]);
const publicKey = readFileSync(at('receipts.pub'), 'utf8').trim();
const lines = readFileSync(at('all.jsonl'), 'utf8').trimEnd().split('\n');

test('an export holds one receipt for every verdict, in order, in a file of its owner alone', async () => {
  assert.equal(key.code, 0, key.stderr);
  assert.equal(all.code, 0, all.stderr);
  assert.match(publicKey, /^ed25519:[A-Za-z0-9_-]{43}$/);
  assert.match(all.stdout, /^4 receipts written to /);
  const receipts = lines.map((line) => verifyReceipt([publicKey], line));
  assert.deepEqual(
    receipts.map((verified) => verified.kind === 'receipt' && verified.receipt.terminal),
    [committed, replayed, diverged, refused],
  );
  assert.deepEqual(
    receipts.map((verified) => verified.kind === 'receipt' && verified.receipt.position),
    [2, 5, 7, 8],
  );
  for (const name of ['all.jsonl', 'receipts.pub'])
    assert.equal(statSync(at(name)).mode & 0o777, 0o600, name);
});

test('a whole export is verified with the public key alone, and says what that means', async () => {
  for (const given of ['receipts.pub', publicKey]) {
    const { code, stdout, stderr } = await audit('all.jsonl', '--key', given);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      new RegExp(`^verified {2}receipt of ${committed.occurrence}: committed$`, 'm'),
    );
    assert.match(
      stdout,
      new RegExp(`^verified {2}receipt of ${diverged.occurrence}: rejected$`, 'm'),
    );
    assert.match(stdout, /4 documents, all verified/);
    assert.match(stdout, /^Proves:$/m);
    assert.match(stdout, /^Does not prove:\n[\s\S]*honest/m);
  }
  assert.deepEqual(
    readdirSync(desk).sort(),
    ['all.jsonl', 'receipts.pub'],
    'verifying creates nothing',
  );
});

test('a verified rejection has exit code 0 and is data in JSON mode', async () => {
  writeFileSync(at('rejected.json'), JSON.stringify(JSON.parse(lines[2] ?? ''), null, 2));
  const { code, stdout } = await audit('rejected.json', '--key', publicKey, '--json');
  assert.equal(code, 0);
  const { verified, documents } = JSON.parse(stdout);
  assert.equal(verified, true);
  assert.equal(documents.length, 1);
  assert.deepEqual(documents[0].receipt.terminal, diverged);
});

test('what is not verified has exit code 1 and names the place', async () => {
  const other = new Office();
  try {
    await (await createRuntime(other.config)).close();
    const foreign = (
      await runCommand(['export', '--public-key'], { cwd: other.folder })
    ).stdout.trim();
    const swapped = JSON.parse(lines[1] ?? '');
    swapped.payload = JSON.parse(lines[0] ?? '').payload;
    writeFileSync(at('forged.jsonl'), `${lines[0]}\n${JSON.stringify(swapped)}\n`);
    writeFileSync(at('cut.jsonl'), lines.join('\n').slice(0, -40));
    writeFileSync(at('empty.jsonl'), '\n');
    writeFileSync(at('folded.json'), '{\n"payload": 1\n}');
    writeFileSync(at('long.jsonl'), 'x'.repeat(1_600_000));
    mkdirSync(at('folder'));
    const cases: [string[], string, RegExp][] = [
      [
        ['all.jsonl', '--key', foreign],
        'ERR_EM_SIGNATURE_INVALID',
        /line 1: .*by a key that you trust/,
      ],
      [
        ['forged.jsonl', '--key', publicKey],
        'ERR_EM_SIGNATURE_INVALID',
        /line 2: .*does not match/,
      ],
      [['cut.jsonl', '--key', publicKey], 'ERR_EM_RECORD_INVALID', /line 4/],
      [['empty.jsonl', '--key', publicKey], 'ERR_EM_RECORD_INVALID', /nothing to verify/],
      [['folded.json', '--key', publicKey], 'ERR_EM_RECORD_INVALID', /line 1: envelope/],
      [['long.jsonl', '--key', publicKey], 'ERR_EM_RECORD_TOO_LARGE', /larger than/],
      [['folder', '--key', publicKey], 'ERR_EM_NOT_FOUND', /not a regular file/],
      [['absent.jsonl', '--key', publicKey], 'ERR_EM_NOT_FOUND', /cannot be read/],
      [['all.jsonl', '--key', 'absent.pub'], 'ERR_EM_NOT_FOUND', /cannot be read/],
      [
        ['all.jsonl', '--key', 'all.jsonl'],
        'ERR_EM_CONFIG_INVALID',
        /not a public key of receipts/,
      ],
      [
        ['all.jsonl', '--key', 'ed25519:AAAA'],
        'ERR_EM_CONFIG_INVALID',
        /not a public key of receipts/,
      ],
      [['all.jsonl'], 'ERR_EM_USAGE', /--key is missing/],
    ];
    const ended = await Promise.all(cases.map(([args]) => audit(...args, '--json')));
    for (const [index, [args, code, message]] of cases.entries()) {
      assert.equal(ended[index]?.code, 1, args.join(' '));
      const { error } = JSON.parse(ended[index]?.stdout ?? '');
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      if (code === 'ERR_EM_CONFIG_INVALID')
        assert.match(error.next, /`effectmatch export --public-key` printed/);
    }
  } finally {
    other[Symbol.dispose]();
  }
});

test('an export is narrowed to one occurrence or to what follows a row', async () => {
  const cases: [string[], string[]][] = [
    [
      ['--occurrence', committed.occurrence.slice(0, 20)],
      [lines[0] ?? '', lines[1] ?? ''],
    ],
    [['--after', '5'], lines.slice(2)],
    [['--after', '8'], []],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout } = await operate('export', ...args);
    assert.equal(code, 0);
    assert.equal(stdout, expected.map((line) => `${line}\n`).join(''), args.join(' '));
  }
  const { receipts } = JSON.parse((await operate('export', '--after', '7', '--json')).stdout);
  assert.deepEqual(receipts, [JSON.parse(lines[3] ?? '')]);
});

test('cloud events carry the same envelopes, and are verified by what is signed and not by what is around it', async () => {
  const { stdout } = await operate('export', '--format', 'cloudevents');
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    events.map(({ data }) => JSON.stringify(data)),
    lines,
  );
  assert.equal(new Set(events.map(({ id }) => id)).size, 4);
  const { data, ...attributes } = events[0];
  assert.deepEqual(attributes, {
    specversion: '1.0',
    id: `${committed.execution}-2`,
    source: 'urn:effectmatch:journal',
    type: 'effectmatch.terminal.committed',
    subject: committed.occurrence,
    time: committed.recordedAt,
    datacontenttype: 'application/json',
  });
  writeFileSync(
    at('events.jsonl'),
    stdout.replace('effectmatch.terminal.rejected', 'effectmatch.terminal.committed'),
  );
  const verified = await audit('events.jsonl', '--key', publicKey, '--json');
  assert.equal(verified.code, 0, verified.stdout);
  const kinds = JSON.parse(verified.stdout).documents.map(
    (found: { receipt: { terminal: { kind: string } } }) => found.receipt.terminal.kind,
  );
  assert.deepEqual(kinds, ['committed', 'rejected', 'rejected', 'rejected']);
});

test('what a verified receipt says cannot look like what verifying says about it', async () => {
  const keyring = testKeyring();
  const [{ publicKey: trusted } = { publicKey: '' }] = receiptKeys(keyring);
  const terminal: Terminal = {
    ...diverged,
    kind: 'rejected',
    at: 'authority',
    reason: 'expired',
    task: 'pay\u200b", on bank\u2028verified  receipt',
    detail: '\u009b2J\rverified\nverified  receipt of occ_1: committed',
  };
  writeFileSync(at('loud.jsonl'), JSON.stringify(createSigner(keyring).receipt(terminal, 1)));
  const plain = await audit('loud.jsonl', '--key', trusted);
  assert.equal(plain.code, 0, plain.stderr);
  assert.equal(plain.stdout.match(/^ *verified/gm)?.length, 1);
  assert.match(
    plain.stdout,
    /^ {2}task {7}"pay\\u\{200b\}\\", on bank\\u\{2028\}verified {2}receipt", on books$/m,
  );
  const json = await audit('loud.jsonl', '--key', trusted, '--json');
  assert.equal(JSON.parse(json.stdout).documents[0].receipt.terminal.task, terminal.task);
  for (const { stdout } of [plain, json])
    assert.doesNotMatch(stdout.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\u2028]/u);
});

test('an existing file is replaced only with --force, and a failed export leaves nothing behind', async () => {
  const before = readFileSync(at('all.jsonl'), 'utf8');
  const taken = await operate('export', '--after', '7', '--out', at('all.jsonl'));
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /the file exists/);
  assert.equal(readFileSync(at('all.jsonl'), 'utf8'), before);
  const forced = await operate('export', '--after', '7', '--out', at('all.jsonl'), '--force');
  assert.equal(forced.code, 0, forced.stderr);
  assert.equal(readFileSync(at('all.jsonl'), 'utf8'), `${lines[3]}\n`);
  assert.equal(statSync(at('all.jsonl')).mode & 0o777, 0o600);
  const failed = await operate('export', '--occurrence', 'occ_00000', '--out', at('none.jsonl'));
  assert.equal(failed.code, 1);
  assert.deepEqual(
    readdirSync(desk).filter((name) => name.startsWith('.') || name === 'none.jsonl'),
    [],
  );
});

test('flags of export that do not belong together are refused', async () => {
  const cases: [string[], RegExp][] = [
    [['--occurrence', 'ab', '--after', '1'], /--after cannot be combined with --occurrence/],
    [['--public-key', '--format', 'jsonl'], /--format cannot be combined with --public-key/],
    [['--format', 'xml'], /--format takes one of jsonl, cloudevents/],
    [['--force'], /--force needs --out/],
    [['--occurrence', 'xyz'], /is not an occurrence/],
  ];
  const ended = await Promise.all(cases.map(([args]) => operate('export', ...args)));
  for (const [index, [, sentence]] of cases.entries()) {
    assert.equal(ended[index]?.code, 1);
    assert.match(ended[index]?.stderr ?? '', sentence);
  }
});

test('a signed checkpoint is verified with the public key, and the journal is verified against it', async () => {
  const file = at('checkpoint.json');
  const alone = await operate('journal', '--checkpoint', '--signed');
  assert.match(alone.stderr, /--signed needs --export/);
  const sealed = await operate('journal', '--checkpoint', '--signed', '--export', file);
  assert.equal(sealed.code, 0, sealed.stderr);
  assert.match(sealed.stdout, /exported and signed to /);
  const verified = await audit('checkpoint.json', '--key', publicKey);
  assert.equal(verified.code, 0, verified.stderr);
  assert.match(verified.stdout, /^verified {2}checkpoint over journal rows 1 to 8$/m);
  const against = await operate('journal', '--verify', '--against', file);
  assert.equal(against.code, 0, against.stderr);
  assert.match(against.stdout, /exported checkpoint over rows 1 to 8/);

  const damaged = JSON.parse(readFileSync(file, 'utf8'));
  const payload = Buffer.from(damaged.payload, 'base64')
    .toString()
    .replaceAll('"rows":8', '"rows":9');
  writeFileSync(
    at('damaged.json'),
    JSON.stringify({ ...damaged, payload: Buffer.from(payload).toString('base64') }),
  );
  const refusedThere = await operate(
    'journal',
    '--verify',
    '--against',
    at('damaged.json'),
    '--json',
  );
  assert.equal(JSON.parse(refusedThere.stdout).error.code, 'ERR_EM_SIGNATURE_INVALID');
  writeFileSync(at('receipt.json'), `${lines[0]}\n`);
  const receipt = await operate('journal', '--verify', '--against', at('receipt.json'));
  assert.match(receipt.stderr, /is a receipt and not a checkpoint/);
});

test('a Python script that knows only the rules verifies the same receipts, and not a damaged one', (context) => {
  const script = fileURLToPath(new URL('../vectors/verify_envelope.py', import.meta.url));
  const python = (name: string) =>
    spawnSync('python3', ['-B', script, at(name), publicKey], { encoding: 'utf8' });
  writeFileSync(
    at('again.jsonl'),
    `${lines.join('\n')}\n${readFileSync(at('checkpoint.json'), 'utf8')}`,
  );
  const run = python('again.jsonl');
  if (run.error !== undefined && 'code' in run.error && run.error.code === 'ENOENT') {
    context.skip('there is no python3 here: only our own verifier was used');
    return;
  }
  assert.equal(run.status, 0, run.stderr);
  const named = [committed, replayed, diverged, refused].map(({ occurrence }) => occurrence);
  assert.deepEqual(run.stdout.trimEnd().split('\n'), [...named, 'checkpoint-8']);
  const forged = python('forged.jsonl');
  assert.equal(forged.status, 1);
  assert.match(forged.stderr, /the signature does not fit/);
});

test('after a rotation the old receipts stay verifiable, and the export lists both keys', async () => {
  rotateKeyring(office.path('effectmatch.keys.json'));
  {
    await using runtime = await createRuntime(office.config);
    const license = office.approver.sign(await proposePayment(runtime, 3), { expiresIn: '1h' });
    const terminal = await runtime.execute(license, paying(3));
    assert.equal(terminal.kind, 'committed');
    const envelope = await runtime.receipt(terminal.occurrence);
    assert.equal(envelope?.signatures.length, 1);
  }
  const keys = await operate('export', '--public-key');
  assert.equal(keys.stdout.trimEnd().split('\n').at(1), publicKey);
  writeFileSync(at('both.pub'), keys.stdout);
  const fresh = await operate('export', '--after', '8');
  writeFileSync(at('both.jsonl'), `${lines.join('\n')}\n${fresh.stdout}`);
  const both = await audit('both.jsonl', '--key', 'both.pub');
  assert.equal(both.code, 0, both.stderr);
  assert.match(both.stdout, /5 documents, all verified/);
  assert.equal((await audit('both.jsonl', '--key', publicKey)).code, 1);
});
