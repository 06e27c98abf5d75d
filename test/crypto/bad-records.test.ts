// Goal: no record kind accepts anything but its closed, versioned, canonical form. Method: every
// golden vector is damaged at every place in every listed way; each damage has a stable error code.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ErrorCode } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import type { RecordKind } from '../../src/protocol/record.ts';
import { closed, copyOnce, dictionary, integer, plain, text } from '../../src/protocol/schema.ts';
import { recordKinds, type Vector, vectors } from '../vectors/load.ts';
import {
  assertRefuses,
  isContainer,
  isObject,
  type Json,
  mutate,
  type Path,
  type Place,
  places,
  withField,
} from './mutants.ts';

const kinds = await recordKinds();
const prototypeBefore = Reflect.ownKeys(Object.prototype);

after(() => {
  assert.deepEqual(
    Reflect.ownKeys(Object.prototype),
    prototypeBefore,
    'Object.prototype is as it was',
  );
  assert.equal(Reflect.get({}, 'polluted'), undefined);
});

interface Subject {
  readonly vector: Vector;
  readonly kind: RecordKind<object>;
  readonly record: Json;
  readonly all: readonly Place[];
}

const subjects: readonly Subject[] = vectors.map((vector) => {
  const kind = kinds.get(vector.kind);
  assert.ok(kind);
  const record = vector.record as unknown as Json;
  return { vector, kind, record, all: places(vector.kind, record) };
});

/** Refused as an object, for writing, and as text, and for the same reason each time. */
function assertRefused(subject: Subject, mutant: unknown, code: ErrorCode, what: string): void {
  const { kind, vector } = subject;
  const name = `${vector.name}, ${what}`;
  assertRefuses(code, () => kind.parse(mutant), name);
  assertRefuses(code, () => kind.text(mutant as object), name);
  assertRefuses(code, () => kind.parseText(JSON.stringify(mutant)), name);
}

/**
 * The same for a mutant that has a canonical text: it is given that text, so only the schema can
 * refuse it.
 */
function assertRefusedBySchema(subject: Subject, mutant: Json | undefined, what: string): void {
  const name = `${subject.vector.name}, ${what}`;
  const code = 'ERR_EM_RECORD_INVALID';
  assertRefuses(code, () => subject.kind.parse(mutant), name);
  assertRefuses(code, () => subject.kind.text(mutant as object), name);
  assertRefuses(code, () => subject.kind.parseText(canonical(mutant)), name);
}

const nameOf = (path: Path) => path.join('.') || 'the record';

for (const subject of subjects) {
  const { vector, record, all, kind } = subject;

  test(`${vector.name}: an unknown field is refused at every level that fixes its fields`, () => {
    const levels = all.filter(({ value, zone }) => isObject(value) && zone === 'closed');
    assert.ok(levels.length >= 1);
    for (const { path } of levels) {
      for (const field of [
        'unknown',
        '',
        'constructor',
        'prototype',
        'toString',
        'hasOwnProperty',
        'Version',
      ]) {
        const mutant = mutate(record, path, (level) => withField(level, field, 1));
        assertRefusedBySchema(subject, mutant, `${nameOf(path)} with "${field}"`);
      }
    }
  });

  test(`${vector.name}: an own __proto__ field is refused at every level, before any schema sees it`, () => {
    const levels = all.filter(({ value }) => isObject(value));
    for (const { path } of levels) {
      for (const content of [{ polluted: true }, null, 1]) {
        const mutant = mutate(record, path, (level) => withField(level, '__proto__', content));
        assertRefused(
          subject,
          mutant,
          'ERR_EM_CANON_UNSUPPORTED',
          `${nameOf(path)} with __proto__`,
        );
      }
    }
  });

  test(`${vector.name}: every field is needed, except those that are optional by design`, () => {
    const optional = [
      /^(manifest|approved)\.effects\.\d+\.(key|before|after)$/,
      /^(manifest|approved)\.watch\.\d+\.columns$/,
      /^(manifest|approved)\.settings(\..+)?$/,
      /^license\.(action|operation)$/,
      /^frame\.operations$/,
      /^(statement\.predicate\.)?shadow\.(license|approved|outcome)$/,
      /^policy\.issuers\.[^.]+\.limits(\.[A-Za-z]+|\.hours\.\d+\.days)?$/,
      /^(receipt\.)?terminal\.residue(\.\d+\.(from|to))?$/,
    ];
    if (vector.text.includes('"kind":"rejected"'))
      optional.push(/^(receipt\.)?terminal\.(claim|certificate|outcome)$/);
    if (vector.text.includes('"kind":"indeterminate"')) {
      optional.push(/^(receipt\.)?terminal\.(certificate|permit|consumedAt)$/);
    }
    for (const { path } of all) {
      const parent = all.find((place) => place.path.join() === path.slice(0, -1).join());
      if (
        path.length === 0 ||
        parent === undefined ||
        !isObject(parent.value) ||
        parent.zone !== 'closed'
      )
        continue;
      const mutant = mutate(record, path, () => undefined);
      const isOptional = optional.some((pattern) => pattern.test([vector.kind, ...path].join('.')));
      if (isOptional) assert.deepEqual(kind.parse(mutant), mutant);
      else assertRefusedBySchema(subject, mutant, `without ${nameOf(path)}`);
    }
  });

  test(`${vector.name}: a value of another type is refused everywhere`, () => {
    const samples: readonly Json[] = [null, true, 7.25, 'x', [], {}, [null], { x: 1 }];
    let tried = 0;
    for (const { path, value, zone } of all) {
      if (zone === 'json') continue;
      for (const sample of samples) {
        if (typeOf(sample) === typeOf(value)) continue;
        const place = [vector.kind, ...path].join('.');
        const isRow = /^(manifest|approved)\.requires\.\d+\.row$/.test(place);
        if (isRow && (sample === null || isObject(sample))) continue;
        // A sequence that was never drawn from stands nowhere yet.
        if (sample === null && /^(receipt\.)?terminal\.residue\.\d+\.from$/.test(place)) continue;
        assertRefusedBySchema(
          subject,
          mutate(record, path, () => sample),
          `${nameOf(path)} = ${canonical(sample)}`,
        );
        tried += 1;
      }
    }
    assert.ok(tried > 10);
  });

  test(`${vector.name}: another version is refused`, () => {
    for (const version of [0, 2, -1, 1.5, '1', 2 ** 53]) {
      assertRefusedBySchema(
        subject,
        mutate(record, ['version'], () => version),
        `version ${version}`,
      );
    }
  });

  test(`${vector.name}: a lone surrogate is refused in every string and every key`, () => {
    for (const { path, value } of all) {
      if (typeof value === 'string') {
        for (const damaged of [`${value}\ud800`, `\udfff${value}`]) {
          const mutant = mutate(record, path, () => damaged);
          assertRefused(
            subject,
            mutant,
            'ERR_EM_CANON_UNSUPPORTED',
            `${nameOf(path)} with a lone surrogate`,
          );
        }
      }
      if (!isObject(value)) continue;
      const mutant = mutate(record, path, (level) => withField(level, 'x\ud800', 1));
      assertRefused(
        subject,
        mutant,
        'ERR_EM_CANON_UNSUPPORTED',
        `${nameOf(path)} with a lone surrogate in a key`,
      );
    }
  });

  test(`${vector.name}: NUL is refused in every name, id, time and digest, and kept in free text`, () => {
    for (const { path, value, zone } of all) {
      if (typeof value !== 'string') continue;
      const mutant = mutate(record, path, () => `${value}\u0000`);
      if (zone === 'json' || isFreeText([vector.kind, ...path].join('.'))) {
        assert.deepEqual(kind.parseText(canonical(mutant)), mutant, nameOf(path));
      } else {
        assertRefusedBySchema(subject, mutant, `${nameOf(path)} with NUL`);
      }
    }
  });

  test(`${vector.name}: numbers outside of what a record can carry are refused`, () => {
    for (const { path, value, zone } of all) {
      if (typeof value !== 'number') continue;
      for (const number of [Number.NaN, Number.POSITIVE_INFINITY, -0]) {
        const mutant = mutate(record, path, () => number);
        assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parse(mutant), nameOf(path));
      }
      if (zone === 'json') continue;
      for (const number of [2 ** 53, -(2 ** 53), 1e300, 0.5, -1]) {
        assertRefusedBySchema(
          subject,
          mutate(record, path, () => number),
          `${nameOf(path)} = ${number}`,
        );
      }
    }
  });

  test(`${vector.name}: what is not plain data is refused without being run`, () => {
    const calls: Path[] = [];
    const strange: readonly unknown[] = [
      undefined,
      1n,
      () => 1,
      Symbol('x'),
      new Date(0),
      new Map(),
      Object.create({}),
    ];
    for (const { path, zone } of all.filter((place) => place.path.length > 0)) {
      for (const content of strange) {
        const mutant = place(record, path, () => ({ value: content, enumerable: true }));
        assertRefuses(
          'ERR_EM_CANON_UNSUPPORTED',
          () => kind.parse(mutant),
          `${nameOf(path)} ${zone}`,
        );
      }
      const getter = place(record, path, () => ({ get: () => calls.push(path), enumerable: true }));
      assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parse(getter), nameOf(path));
    }
    assert.deepEqual(calls, [], 'no accessor was called');
  });

  test(`${vector.name}: cycles and depth bombs are refused`, () => {
    for (const { path } of all.filter(({ value }) => isContainer(value))) {
      const bomb = mutate(record, path, () => deep(5_000));
      assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parse(bomb), nameOf(path));
    }
    const cycle: Record<string, unknown> = { ...vector.record };
    cycle.version = cycle;
    assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parse(cycle), 'a cycle');
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const depth = Math.min(100_000, Math.floor(kind.maxBytes / 8));
      const text = `${open.repeat(depth)}1${close.repeat(depth)}`;
      assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parseText(text), 'deep text');
      assertRefuses(
        'ERR_EM_RECORD_INVALID',
        () => kind.parseText(open.repeat(depth)),
        'unclosed text',
      );
    }
  });

  test(`${vector.name}: text that is not the canonical text is refused`, () => {
    const { text } = vector;
    const first = /^\{"(\w)(\w*)":/.exec(text);
    assert.ok(first);
    const escaped = `{"\\u00${first[1]?.charCodeAt(0).toString(16)}${first[2]}":${text.slice(first[0].length)}`;
    assert.deepEqual(JSON.parse(escaped), vector.record, 'the escaped text says the same');
    const reordered = JSON.stringify(
      Object.fromEntries(Object.entries(JSON.parse(text) as object).reverse()),
    );
    const version = '"version":1';
    assert.ok(text.includes(version));
    const variants = {
      'a space': text.replace(':', ': '),
      'a trailing newline': `${text}\n`,
      'a leading space': ` ${text}`,
      'other order': reordered,
      'an escape that is not needed': escaped,
      'a duplicate field, equal': text.replace(version, `${version},${version}`),
      'a duplicate field, the last one right': text.replace(version, `"version":2,${version}`),
      'a duplicate field, the last one wrong': text.replace(version, `${version},"version":2`),
      '1.0 for 1': text.replace(version, '"version":1.0'),
      '1e0 for 1': text.replace(version, '"version":1e0'),
      'a number that a double cannot hold': text.replace(
        version,
        '"version":1.00000000000000000001',
      ),
      'a byte order mark': `\ufeff${text}`,
      'two records': `${text}${text}`,
      'half a record': text.slice(0, text.length / 2),
      'a comment': `${text}//`,
      nothing: '',
      'another kind of JSON': '"text"',
      null: 'null',
    };
    for (const [what, variant] of Object.entries(variants)) {
      assertRefuses('ERR_EM_RECORD_INVALID', () => kind.parseText(variant), what);
    }
    const infinite = text.replace(version, '"version":1e400');
    assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parseText(infinite), '1e400');
    const raw = text.replace(version, `${version},"__proto__":{"polluted":true}`);
    assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => kind.parseText(raw), '__proto__');
  });
}

test('a record beyond its size limit is refused before its schema looks at it', () => {
  let tried = 0;
  for (const { kind, vector } of subjects) {
    assert.ok(kind.maxBytes <= 512 * 1024 * 1024, 'every kind has a limit');
    // The two kinds that hold a whole outcome may be larger than a test should allocate.
    if (kind.maxBytes > 1024 * 1024) continue;
    const padding = 'x'.repeat(kind.maxBytes);
    const large = { ...vector.record, padding };
    assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => kind.parse(large), vector.name);
    assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => kind.text(large), vector.name);
    assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => kind.parseText(canonical(large)), vector.name);
    assertRefuses(
      'ERR_EM_RECORD_TOO_LARGE',
      () => kind.parseText(' '.repeat(kind.maxBytes + 1)),
      vector.name,
    );
    // Limits are in bytes, not characters: this text has fewer characters than the limit has bytes.
    const wide = { ...vector.record, padding: '€'.repeat(Math.ceil(kind.maxBytes / 3)) };
    assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => kind.parse(wide), vector.name);
    tried += 1;
  }
  assert.ok(tried >= 20);
});

test('an own __proto__ key is refused by schemas and has no canonical text', () => {
  const hostile: unknown = JSON.parse('{"a":1,"__proto__":{"polluted":true}}');
  for (const schema of [closed({ a: integer(0) }), dictionary(text(), plain), plain])
    assert.ok('why' in copyOnce<unknown>(schema, hostile, 10));
  assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => canonical(hostile), 'canonical');
});

function typeOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

/** Text that people or backends choose and that no key, path or comparison by name depends on. */
function isFreeText(name: string): boolean {
  return [
    /^(certificate|claim)\.(backend|executor)$/,
    /^shadow\.seen\.\d+\.target$/,
    /^(receipt\.)?terminal\.residue\.\d+\.name$/,
    /^permit\.bound\.(candidate|evidence)$/,
    /^(receipt\.|statement\.predicate\.)?(terminal|shadow)\.(detail|gap|outcome\.gaps\.\d+)$/,
    /^(manifest|approved)\.(effects|requires|watch)\.\d+\.(target|columns\.\d+)$/,
    /^(manifest|approved)\.effects\.\d+\.(key|before|after)\.[^.]+\.(generated|matches)$/,
    /^policy\.issuers\.[^.]+\.limits\.(relations\.\d+\.name|amounts\.\d+\.(target|column))$/,
    /^approved\.registration\.targets\.\d+\.(name|(columns|key|volatile)\.\d+)$/,
  ].some((pattern) => pattern.test(name));
}

/** Puts a property of any kind at a place, without reading what it holds. */
function place(record: Json, path: Path, descriptor: () => PropertyDescriptor): unknown {
  const copy = structuredClone(record);
  let owner: unknown = copy;
  for (const step of path.slice(0, -1)) owner = Reflect.get(owner as object, step);
  Object.defineProperty(owner, path.at(-1) as string, { ...descriptor(), configurable: true });
  return copy;
}

function deep(levels: number): Json {
  let value: Json = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
