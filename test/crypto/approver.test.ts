// Goal: an approver signs exactly what was shown, for as long as was said, and nothing that
// contradicts itself. Method: a real proposal changed in one place at a time; durations and times
// by the table; key files on disk.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import {
  type ApproverKey,
  approver,
  generateApprover,
  loadApproverKey,
  randomIds,
  saveApproverKey,
} from '../../src/crypto/approver.ts';
import { keyId } from '../../src/crypto/approver-key.ts';
import { digestRecord, renderingDigest } from '../../src/crypto/digest.ts';
import { parseDuration } from '../../src/crypto/duration.ts';
import { parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { parseSignedLicense, verifyLicense } from '../../src/crypto/signature.ts';
import type { Cell } from '../../src/protocol/effect.ts';
import { licenseRecord, type Proposal } from '../../src/protocol/license.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import type { Digest } from '../../src/protocol/record.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';
import { vectors } from '../vectors/load.ts';
import { assertRefuses } from './mutants.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 2, 1, 8, 0, 0);
const key = generateApprover('ap-team');
const apTeam = approver({ ...key, clock: { now: () => NOW } });

const folder = fs.mkdtempSync(join(tmpdir(), 'effectmatch-approver-'));
after(() => fs.rmSync(folder, { recursive: true }));

const approved = approvedRecord.parse(vectors.find(({ kind }) => kind === 'approved')?.record);
const other = approvedRecord.parse({ ...approved, effects: [] });

function propose(outcome = approved): Proposal {
  const { issuer, key, nonce, notBefore, expiresAt, ...draft } = licenseRecord.parse(
    vectors.find(({ kind }) => kind === 'license')?.record,
  );
  const rendering = renderLicense(draft, outcome);
  return {
    draft: {
      ...draft,
      approved: digestRecord(approvedRecord, outcome),
      rendering: renderingDigest(outcome.salt, rendering),
    },
    approved: outcome,
    rendering,
  };
}

test('a signed proposal is a license by this issuer that its public key verifies', () => {
  const proposal = propose();
  const signed = apTeam.sign(proposal, { expiresIn: '10m' });
  assert.ok(verifyLicense([parseIssuerKey(key.publicKey)], signed));
  assert.deepEqual(signed.approved, approved);
  const { issuer, key: id, nonce, notBefore, expiresAt, ...rest } = signed.license;
  assert.deepEqual(rest, proposal.draft);
  assert.equal(issuer, 'ap-team');
  assert.equal(id, keyId(key.publicKey));
  assert.match(nonce, /^[0-9a-f]{32}$/);
  assert.equal(
    notBefore,
    '2026-03-01T07:59:00.000Z',
    'a minute of difference between clocks is allowed for',
  );
  assert.equal(expiresAt, '2026-03-01T08:10:00.000Z');
  assert.deepEqual(parseSignedLicense(JSON.stringify(signed)), signed);
});

test('two signatures of one proposal have two nonces: each is an approval of its own', () => {
  const nonces = [1, 2].map(() => apTeam.sign(propose(), { expiresIn: '1h' }).license.nonce);
  assert.equal(new Set(nonces).size, 2);
});

test('nonce and start can be given; the end counts from the later of start and now', () => {
  const nonce = 'given-by-the-caller';
  const later = apTeam.sign(propose(), { expiresIn: '1h', notBefore: NOW + DAY_MS, nonce });
  assert.equal(later.license.nonce, nonce);
  assert.equal(later.license.notBefore, '2026-03-02T08:00:00.000Z');
  assert.equal(later.license.expiresAt, '2026-03-02T09:00:00.000Z');
  const earlier = apTeam.sign(propose(), { expiresIn: 90_000, notBefore: NOW - DAY_MS });
  assert.equal(earlier.license.notBefore, '2026-02-28T08:00:00.000Z');
  assert.equal(earlier.license.expiresAt, '2026-03-01T08:01:30.000Z');
  for (const bad of ['', 'short', 'with spaces inside', 'x'.repeat(65)]) {
    const sign = () => apTeam.sign(propose(), { expiresIn: '1h', nonce: bad });
    assertRefuses('ERR_EM_RECORD_INVALID', sign, `nonce ${bad}`);
  }
  for (const notBefore of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, 8.64e15]) {
    assertRefuses(
      'ERR_EM_USAGE',
      () => apTeam.sign(propose(), { expiresIn: '1h', notBefore }),
      String(notBefore),
    );
  }
});

test('durations have one strict form', () => {
  const cases: readonly (readonly [string | number, number])[] = [
    ['1s', 1000],
    ['30s', 30_000],
    ['10m', 600_000],
    ['1h', 3_600_000],
    ['2d', 2 * DAY_MS],
    ['30d', 30 * DAY_MS],
    ['2592000s', 30 * DAY_MS],
    [1, 1],
    [30 * DAY_MS, 30 * DAY_MS],
  ];
  for (const [input, ms] of cases)
    assert.equal(parseDuration(input, 30 * DAY_MS), ms, String(input));
  const words = [
    '',
    '10',
    'm',
    '10 m',
    ' 10m',
    '10m ',
    '10M',
    '1.5h',
    '-1h',
    '+1h',
    '0m',
    '010m',
    '1h30m',
    '10min',
    '1w',
    '1e3s',
  ];
  const numbers = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];
  const tooLong = ['31d', '721h', '999999999d', 30 * DAY_MS + 1];
  const strangers = [undefined, null, {}, [], true] as unknown as string[];
  for (const input of [...words, ...numbers, ...tooLong, ...strangers]) {
    assertRefuses('ERR_EM_USAGE', () => parseDuration(input, 30 * DAY_MS), String(input));
    assertRefuses(
      'ERR_EM_USAGE',
      () => apTeam.sign(propose(), { expiresIn: input }),
      String(input),
    );
  }
});

test('a proposal that shows one thing and carries another is not signed', () => {
  const good = propose();
  const digest = '0'.repeat(64) as Digest;
  const shown = renderLicense(good.draft, other);
  assert.notEqual(shown, good.rendering);
  const contradictions: Readonly<Record<string, Proposal>> = {
    'the text of another outcome': { ...good, rendering: shown },
    'the text of another outcome, named in the draft': {
      ...good,
      rendering: shown,
      draft: { ...good.draft, rendering: renderingDigest(other.salt, shown) },
    },
    'one character more': { ...good, rendering: `${good.rendering} ` },
    'one character other': { ...good, rendering: good.rendering.replace('paid', 'pa1d') },
    'no text': { ...good, rendering: '' },
    'another outcome under the shown text': { ...good, approved: other },
    'a draft of another outcome': { ...good, draft: { ...good.draft, approved: digest } },
    'a draft of another rendering': { ...good, draft: { ...good.draft, rendering: digest } },
    'a draft for another adapter': { ...good, draft: { ...good.draft, adapter: 'elsewhere' } },
    'more executions than shown': { ...good, draft: { ...good.draft, occurrences: 1000 } },
    'more released work than shown': {
      ...good,
      draft: { ...good.draft, continuations: ['ship-goods'] },
    },
    'another task than shown': { ...good, draft: { ...good.draft, task: 'another task' } },
    'another plan than shown': { ...good, draft: { ...good.draft, planRevision: 7 } },
    'another source than shown': { ...good, draft: { ...good.draft, source: 'rehearsed' } },
    'another action than shown': { ...good, draft: { ...good.draft, action: digest } },
    'another salt': { ...good, approved: { ...approved, salt: '0'.repeat(32) } },
  };
  for (const [what, proposal] of Object.entries(contradictions)) {
    assertRefuses(
      'ERR_EM_MANIFEST_INVALID',
      () => apTeam.sign(proposal, { expiresIn: '10m' }),
      what,
    );
  }
});

test('an outcome that no comparison could evaluate is not signed', () => {
  const [first, ...rest] = approved.effects;
  assert.ok(first !== undefined);
  const unusable: Readonly<Record<string, Cell>> = {
    'a pattern that is none': { matches: '(((' },
    'a pattern beyond its bounds': { matches: 'a{1000000}' },
    'a range of two kinds': { between: [1, 'a'] },
    'a range from high to low': { between: [2, 1] },
    'a range of what has no order': { between: [null, null] },
  };
  for (const side of ['key', 'before', 'after'] as const) {
    for (const [what, cell] of Object.entries(unusable)) {
      const outcome = approvedRecord.parse({
        ...approved,
        effects: [{ ...first, [side]: { column: cell } }, ...rest],
      });
      assertRefuses(
        'ERR_EM_MANIFEST_INVALID',
        () => apTeam.sign(propose(outcome), { expiresIn: '10m' }),
        `${what}, signed`,
      );
    }
  }
});

test('a proposal is a closed form, and leaves to the approver what the approver decides', () => {
  const good = propose();
  const { rendering: _, ...withoutRendering } = good;
  const { frame: __, ...withoutFrame } = good.draft;
  const bad: Record<string, unknown> = {
    nothing: null,
    'an array': [good],
    'no rendering': withoutRendering,
    'a field more': { ...good, extra: 1 },
    'a draft that is no object': { ...good, draft: 'draft' },
    'a draft that is an array': { ...good, draft: [] },
    'a draft with a field more': { ...good, draft: { ...good.draft, extra: 1 } },
    'a draft with a field less': { ...good, draft: withoutFrame },
    'a draft of another version': { ...good, draft: { ...good.draft, version: 2 } },
    'an outcome with a field more': { ...good, approved: { ...approved, extra: 1 } },
    'not JSON': '{',
    'a key twice': JSON.stringify(good).replace('"draft":{', '"draft":{"occurrences":7,'),
  };
  for (const field of ['issuer', 'key', 'nonce', 'notBefore', 'expiresAt']) {
    bad[`a draft that decides ${field}`] = { ...good, draft: { ...good.draft, [field]: 'x' } };
  }
  for (const [what, proposal] of Object.entries(bad)) {
    assertRefuses(
      'ERR_EM_RECORD_INVALID',
      () => apTeam.sign(proposal as Proposal, { expiresIn: '10m' }),
      what,
    );
  }
  for (const draft of [null, 'draft', 7, true]) {
    assert.throws(
      () => parseProposal({ ...good, draft }),
      /the draft is not an object/,
      String(draft),
    );
  }
  const polluting = JSON.parse(
    JSON.stringify(good).replace('"draft":{', '"draft":{"__proto__":{"occurrences":7},'),
  );
  assertRefuses(
    'ERR_EM_CANON_UNSUPPORTED',
    () => apTeam.sign(polluting, { expiresIn: '10m' }),
    '__proto__',
  );
  assert.deepEqual(parseProposal(JSON.stringify(good, null, 2)), good);
});

test('what is signed is what was checked: accessors in a proposal are not called', () => {
  const calls: string[] = [];
  const draft = Object.defineProperty({ ...propose().draft }, 'approved', {
    get: () => calls.push('approved'),
    enumerable: true,
  });
  const sign = () => apTeam.sign({ ...propose(), draft }, { expiresIn: '10m' });
  assertRefuses('ERR_EM_CANON_UNSUPPORTED', sign, 'accessor');
  assert.deepEqual(calls, []);
});

test('an issuer has a name that records can carry', () => {
  for (const issuer of ['', ' ', 'a b', '-a', 'x'.repeat(129), 'a\n']) {
    assertRefuses('ERR_EM_CONFIG_INVALID', () => generateApprover(issuer), issuer);
    assertRefuses('ERR_EM_CONFIG_INVALID', () => approver({ ...key, issuer }), issuer);
  }
  assert.equal(approver(key).publicKey, key.publicKey);
});

test('a key file is created once with mode 0600 and reads back; a readable one is refused', () => {
  const file = join(folder, 'ap-team.json');
  saveApproverKey(file, key);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(loadApproverKey(file), key);
  const before = fs.readFileSync(file);
  assertRefuses(
    'ERR_EM_KEYRING_INVALID',
    () => saveApproverKey(file, generateApprover('x')),
    'overwrite',
  );
  assert.deepEqual(fs.readFileSync(file), before);
  fs.chmodSync(file, 0o640);
  assertRefuses('ERR_EM_KEYRING_PERMISSIONS', () => loadApproverKey(file), 'group');
  assertRefuses('ERR_EM_NOT_FOUND', () => loadApproverKey(join(folder, 'absent.json')), 'absent');
});

test('a key file that is not exactly a key pair is refused without showing the private key', () => {
  const good = { version: 1, ...key };
  const contents: readonly unknown[] = [
    null,
    {},
    { ...good, version: 2 },
    { ...good, extra: 1 },
    { ...good, issuer: 'a b' },
    { ...good, publicKey: generateApprover('x').publicKey },
    { ...good, publicKey: 'ed25519:x' },
    { ...good, privateKey: `${key.privateKey}A` },
    { ...good, privateKey: key.publicKey },
  ];
  for (const [index, content] of contents.entries()) {
    const file = join(folder, `bad-${index}.json`);
    fs.writeFileSync(file, JSON.stringify(content), { mode: 0o600 });
    assertRefuses('ERR_EM_KEYRING_INVALID', () => loadApproverKey(file), JSON.stringify(content));
    assert.throws(
      () => loadApproverKey(file),
      (error) => !inspect(error).includes(key.privateKey.slice(20, 40)),
    );
    assertRefuses(
      'ERR_EM_KEYRING_INVALID',
      () => saveApproverKey(`${file}.new`, { ...good, privateKey: 'x' }),
      'save',
    );
  }
});

test('an approver object does not show its private key', () => {
  const shown = `${inspect(apTeam, { depth: 10, showHidden: true })}${JSON.stringify(apTeam)}`;
  assert.ok(shown.includes('ap-team'));
  assert.ok(!shown.includes(key.privateKey.slice(20, 40)));
});

test('random ids have the length asked for and do not repeat', () => {
  assert.match(randomIds.hex(16), /^[0-9a-f]{32}$/);
  // More than are drawn at once, of lengths that do not divide it, and one that is longer than
  // that.
  const ids = Array.from({ length: 500 }, (_, index) => randomIds.hex(16 + (index % 5)));
  assert.deepEqual(
    ids.map((id) => id.length),
    ids.map((_, index) => 2 * (16 + (index % 5))),
  );
  assert.equal(new Set(ids.map((id) => id.slice(0, 32))).size, ids.length);
  assert.match(randomIds.hex(5000), /^[0-9a-f]{10000}$/);
  assert.ok(!ids.some((id) => /0{16}/.test(id)), 'bytes that were erased are not handed out');
});

test('what is no key pair is refused with what one is', () => {
  const { publicKey } = generateApprover('ap-team');
  for (const wrong of [undefined, null, publicKey, { issuer: 'ap-team', publicKey }]) {
    assert.throws(() => approver(wrong as unknown as ApproverKey), {
      code: 'ERR_EM_USAGE',
      message: /generateApprover or loadApproverKey/,
    });
  }
});
