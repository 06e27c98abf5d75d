import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { decodeChangeset } from '../../src/adapters/sqlite/changeset.ts';
import { formatCheckpoint, readCheckpoint } from '../../src/cli/checkpoint-file.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { digestRecord, digestText, renderingDigest } from '../../src/crypto/digest.ts';
import { parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { keyringFromEnv } from '../../src/crypto/keyring.ts';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { parseSignedLicense, verifyLicense } from '../../src/crypto/signature.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { checkpointRecord } from '../../src/protocol/checkpoint.ts';
import type { Proposal } from '../../src/protocol/license.ts';
import { type Approved, approvedRecord } from '../../src/protocol/manifest.ts';
import { compilePattern, runPattern } from '../../src/protocol/pattern.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';
import type { Random } from '../random.ts';
import { recordKinds, vectorKeyring, vectors } from '../vectors/load.ts';
import { damage } from './damage.ts';
import { damageValue } from './damage-value.ts';
import { encodeChangeset, plainText } from './oracle.ts';

/** One parser: how its inputs are made, and what must be true of one that it accepts. */
export interface Subject {
  readonly name: string;
  /** How many inputs of every round it gets. */
  readonly share: number;
  readonly codes: readonly ErrorCode[];
  /**
   * Makes one input and hands it over. Throws what the parser throws; an assertion fails where it
   * accepts wrongly. Answers why, where an input was refused without a throw.
   */
  attempt(dice: Random): string | undefined;
}

const RECORD: readonly ErrorCode[] = [
  'ERR_EM_CANON_UNSUPPORTED',
  'ERR_EM_RECORD_INVALID',
  'ERR_EM_RECORD_TOO_LARGE',
];
const SEAL: readonly ErrorCode[] = ['ERR_EM_KEY_UNKNOWN', 'ERR_EM_SEAL_INVALID'];

/**
 * Text as it would come from a file or the network, with what is not UTF-8 replaced; sometimes byte
 * for character.
 */
const textOf = (bytes: Buffer, dice: Random): string =>
  bytes.toString(dice.below(8) === 0 ? 'latin1' : 'utf8');

async function recordSubjects(): Promise<Subject[]> {
  return [...(await recordKinds())].flatMap(([name, kind]): Subject[] => {
    const own = vectors.filter((vector) => vector.kind === name);
    const texts = own.map(({ text }) => Buffer.from(text));
    const records = own.map(({ record }) => record);
    const sealer = createSealer(vectorKeyring(own[0]?.seal.key ?? ''));
    return [
      {
        name: `${name}.parse`,
        share: 35,
        codes: RECORD,
        attempt(dice) {
          const input = damageValue(records, dice);
          assert.equal(
            plainText(kind.parse(input)),
            plainText(input),
            'what came out is what went in',
          );
          return undefined;
        },
      },
      {
        name: `${name}.parseText`,
        share: 35,
        codes: RECORD,
        attempt(dice) {
          const text = textOf(damage(texts, dice), dice);
          assert.equal(plainText(kind.parseText(text)), text, 'only canonical text is accepted');
          return undefined;
        },
      },
      {
        name: `${name}, sealed`,
        share: 15,
        codes: SEAL,
        attempt(dice) {
          const { text, seal } = dice.pick(own);
          const part = dice.pick(['text', 'text', 'key', 'mac'] as const);
          const spoil = (of: string) =>
            textOf(
              damage(
                [Buffer.from(of), Buffer.from(dice.pick(own)[part === 'text' ? 'text' : 'digest'])],
                dice,
              ),
              dice,
            );
          const changed = { text, ...seal, [part]: spoil(part === 'text' ? text : seal[part]) };
          const opened = sealer.open(kind, changed.text, { key: changed.key, mac: changed.mac });
          const same = own.some(
            (vector) =>
              vector.text === opened.text && plainText(vector.seal) === plainText(opened.seal),
          );
          assert.ok(
            same && plainText(opened.record) === opened.text,
            'only what was sealed is opened',
          );
          return undefined;
        },
      },
    ];
  });
}

const key = generateApprover('ap-team');

function propose(task: string, approved: Approved): Proposal {
  const terms = {
    task,
    planRevision: 3,
    source: 'manifest' as const,
    occurrences: 1,
    continuations: ['reconcile'],
  };
  const rendering = renderLicense(terms, approved);
  const standIn = digestText('effectmatch/fuzz/v1', task);
  const digests = { taskState: standIn, identity: standIn, policy: standIn, frame: standIn };
  const approvedDigest = digestRecord(approvedRecord, approved);
  const named = { approved: approvedDigest, rendering: renderingDigest(approved.salt, rendering) };
  return parseProposal({
    draft: { version: 1, ...terms, ...digests, ...named, adapter: approved.adapter },
    approved,
    rendering,
  });
}

function handoverSubjects(): Subject[] {
  const outcomes = vectors
    .filter(({ kind }) => kind === 'approved')
    .map(({ record }) => record as Approved);
  const proposals = outcomes.map((approved, index) => propose(`task ${index}`, approved));
  const licenses = proposals.map((proposal) => approver(key).sign(proposal, { expiresIn: '10m' }));
  const known = new Set(licenses.map(plainText));
  const shown = new Set(
    proposals.map(({ approved, rendering }) => plainText([approved, rendering])),
  );
  const inputOf = (originals: readonly object[]) => {
    const texts = originals.map((original) => Buffer.from(JSON.stringify(original)));
    return (dice: Random): unknown =>
      dice.below(2) === 0 ? damageValue(originals, dice) : textOf(damage(texts, dice), dice);
  };
  const [licenseInput, proposalInput] = [inputOf(licenses), inputOf(proposals)];
  return [
    {
      name: 'parseSignedLicense and verifyLicense',
      share: 150,
      codes: [...RECORD, 'ERR_EM_MANIFEST_INVALID'],
      attempt(dice) {
        const signed = parseSignedLicense(licenseInput(dice));
        const fits = digestRecord(approvedRecord, signed.approved) === signed.license.approved;
        if (!fits || !verifyLicense([parseIssuerKey(key.publicKey)], signed))
          return 'not what was signed';
        assert.ok(known.has(plainText(signed)), 'only what was signed is accepted');
        return undefined;
      },
    },
    {
      name: 'parseProposal',
      share: 150,
      codes: [...RECORD, 'ERR_EM_MANIFEST_INVALID'],
      attempt(dice) {
        const handed = proposalInput(dice);
        const proposal = parseProposal(handed);
        assert.equal(
          plainText(proposal),
          plainText(typeof handed === 'string' ? JSON.parse(handed) : handed),
        );
        assert.ok(
          shown.has(plainText([proposal.approved, proposal.rendering])),
          'outcome and text are as shown',
        );
        return undefined;
      },
    },
  ];
}

function checkpointSubject(folder: string): Subject {
  const { text, seal, record } = vectors.find(({ kind }) => kind === 'checkpoint') ?? assert.fail();
  const keyring = vectorKeyring(seal.key);
  const keys = { keyring, sealer: createSealer(keyring) };
  const original = Buffer.from(
    formatCheckpoint({ text, seal, record: checkpointRecord.parse(record) }),
  );
  const file = join(folder, 'checkpoint.json');
  return {
    name: 'readCheckpoint',
    share: 30,
    codes: [...SEAL, 'ERR_EM_USAGE'],
    attempt(dice) {
      writeFileSync(file, damage([original], dice));
      const opened = readCheckpoint(keys, file);
      assert.deepEqual({ text: opened.text, seal: opened.seal }, { text, seal });
      return undefined;
    },
  };
}

const secret = (fill: number) => Buffer.alloc(32, fill).toString('base64url');
const RINGS = [
  `k1:${secret(1)}`,
  `k2:${secret(2)},k1:${secret(1)}`,
  ` a.b-c_d:${secret(255)} , k9:${secret(9)}`,
];

const keyringSubject: Subject = {
  name: 'keyringFromEnv',
  share: 100,
  codes: ['ERR_EM_KEYRING_INVALID'],
  attempt(dice) {
    const text = textOf(
      damage(
        RINGS.map((ring) => Buffer.from(ring)),
        dice,
      ),
      dice,
    );
    const { ids } = keyringFromEnv(text);
    const entries = text
      .split(',')
      .map((entry) => /^([a-z0-9][\w.-]{0,63}):([\w-]{43})$/i.exec(entry.trim()) ?? []);
    assert.deepEqual(
      entries.map(([, id]) => id),
      ids,
    );
    assert.equal(new Set(ids).size, ids.length);
    for (const [, , word = ''] of entries)
      assert.equal(Buffer.from(word, 'base64url').toString('base64url'), word);
    return undefined;
  },
};

const PATTERNS = [
  'INV-\\d{4,6}',
  '(a|b)*c?[^x-z]',
  '\\w+@\\w+\\.(com|org)',
  '[\\d\\-]{2}|.{0,20}',
  '((a?){10}){10}',
];

const patternSubject: Subject = {
  name: 'compilePattern and runPattern',
  share: 150,
  codes: ['ERR_EM_MANIFEST_INVALID'],
  attempt(dice) {
    const source = textOf(
      damage(
        PATTERNS.map((pattern) => Buffer.from(pattern)),
        dice,
      ),
      dice,
    );
    const pattern = compilePattern(source);
    assert.ok(pattern.source === source && source.length <= 256 && pattern.states.length <= 4096);
    const text = textOf(dice.bytes(dice.below(30)), dice);
    const { steps } = runPattern(pattern, text);
    const most = (text.length + 1) * (pattern.states.length + 1);
    assert.ok(steps <= most, `${steps} steps, at most ${most}`);
    return undefined;
  },
};

function changesetSubject(): Subject {
  using db = new DatabaseSync(':memory:');
  db.exec(
    'create table one (id integer primary key, v); create table two (a text primary key not null, b, c)',
  );
  db.exec(`insert into one values (1, 'x'), (2, 7); insert into two values ('k', 1.5, x'c0ffee')`);
  const originals = [
    `update one set v = 1e300; delete from one where id = 2`,
    `insert into two values ('ü', -0.5, 1)`,
  ];
  const changesets = originals.map((sql) => {
    const session = db.createSession();
    db.exec(sql);
    return Buffer.from(session.changeset());
  });
  return {
    name: 'decodeChangeset',
    share: 200,
    codes: ['ERR_EM_CHANGESET_INVALID'],
    attempt(dice) {
      const bytes = damage(changesets, dice);
      const tables = decodeChangeset(bytes);
      const cells = tables.flatMap(({ changes }) =>
        changes.flatMap(({ before, after }) => [...before, ...after]),
      );
      assert.ok(cells.length <= bytes.length, 'every cell has at least a byte');
      const again = encodeChangeset(tables, (offset) => (bytes[offset] === 1 ? 1 : 0));
      assert.ok(again.equals(bytes), 'every byte means something');
      return undefined;
    },
  };
}

/** Every parser that meets input from outside. Dispose it, since one of them reads files. */
export async function openSubjects(): Promise<
  { readonly subjects: readonly Subject[] } & Disposable
> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-fuzz-'));
  const subjects = [
    ...(await recordSubjects()),
    ...handoverSubjects(),
    checkpointSubject(folder),
    keyringSubject,
    patternSubject,
    changesetSubject(),
  ];
  return { subjects, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
