// Goal: what a command line or a file says is read without loss, or refused with what to write
// instead. Method: numbers that JSON readers round, and bytes that text readers replace, in every
// place that takes them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ACTION_FLAGS, readActionArgument } from '../../src/cli/action.ts';
import { readArguments } from '../../src/cli/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-argument-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'action.json');
const ask = (...argv: string[]) =>
  readActionArgument(readArguments('run', argv, { flags: ACTION_FLAGS, positionals: [] }));

test('a number that would be rounded is refused in values, actions and inputs, and its digits are shown', () => {
  for (const number of [
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '1e20',
    '1e400',
  ]) {
    const message = new RegExp(
      `has the number ${number.replace('+', '\\+')}, which would be rounded`,
    );
    assert.throws(() => ask('--sql', 'select ?', '--values', `[${number}]`), {
      code: 'ERR_EM_USAGE',
      message,
    });
    assert.throws(() => ask('--operation', 'pay', '--input', `{"a": [${number}]}`), {
      code: 'ERR_EM_USAGE',
      message,
    });
    writeFileSync(file, `{ "sql": "select ?", "values": [${number}] }`);
    assert.throws(() => ask('--action', file), { code: 'ERR_EM_USAGE', message });
  }
  const values = '[9007199254740991, 0.5, {"$int": "9007199254740993"}]';
  assert.deepEqual(ask('--sql', 'select ?, ?, ?', '--values', values), {
    kind: 'action',
    action: {
      sql: 'select ?, ?, ?',
      values: [9007199254740991, 0.5, { $int: '9007199254740993' }],
    },
  });
});

test('a refused number comes with a form that is then accepted', () => {
  for (const [number, forms] of [
    ['9007199254740993', ['$real', '$int']],
    ['1e20', ['$real']],
  ] as const) {
    assert.throws(
      () => ask('--sql', 'select ?', '--values', `[${number}]`),
      ({ next }) => {
        const advised = [...next.matchAll(/\{ "(\$\w+)": "[^"]+" \}/g)];
        assert.deepEqual(
          advised.map(([, tag]) => tag),
          forms,
        );
        for (const [form] of advised) ask('--sql', 'select ?', '--values', `[${form}]`);
        return true;
      },
    );
  }
});

test('a file that is not UTF-8 is refused', () => {
  writeFileSync(
    file,
    Buffer.concat([Buffer.from('{ "sql": "select \''), Buffer.from([0xff]), Buffer.from('\'" }')]),
  );
  assert.throws(() => ask('--action', file), {
    code: 'ERR_EM_USAGE',
    message: /not UTF-8 text; nothing was done/,
  });
});
