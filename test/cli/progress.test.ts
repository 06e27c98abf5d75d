// Goal: people see that something long is under way, programs and files never do, and nothing of it
// stays on the screen. Method: a stream that pretends to be a terminal and a clock in the test's
// hand.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openProgress } from '../../src/cli/progress.ts';

function site(isTTY: boolean) {
  const written: string[] = [];
  const clock = { ms: 0 };
  return {
    written,
    clock,
    stream: { isTTY, write: (text: string) => written.push(text) },
    nowMs: () => clock.ms,
  };
}

test('nothing is said in the first second, then how long and how far, and it is wiped away', () => {
  const place = site(true);
  {
    using progress = openProgress('exporting', place);
    progress.at('1 receipt');
    place.clock.ms = 999;
    progress.at('2 receipts');
    assert.deepEqual(place.written, []);
    place.clock.ms = 2000;
    progress.at('3 receipts');
    progress.at('4 receipts');
    assert.deepEqual(place.written, ['\r\u001b[Kexporting: 2 s, 3 receipts'], 'not at every step');
    place.clock.ms = 3100;
    progress.at('5 receipts');
  }
  assert.deepEqual(place.written.slice(1), ['\r\u001b[Kexporting: 3 s, 5 receipts', '\r\u001b[K']);
});

test('what was quick leaves no trace at all', () => {
  const place = site(true);
  {
    using progress = openProgress('exporting', place);
    progress.at('1 receipt');
  }
  assert.deepEqual(place.written, []);
});

test('nothing is said where nobody reads: no terminal, or a document was asked for', () => {
  for (const [isTTY, quiet] of [
    [false, false],
    [true, true],
  ] as const) {
    const place = site(isTTY);
    using progress = openProgress('exporting', place, quiet);
    place.clock.ms = 10_000;
    progress.at('1 receipt');
    progress[Symbol.dispose]();
    assert.deepEqual(place.written, []);
  }
});

test('every verb that works on a database or a whole journal shows progress', () => {
  const read = (name: string) =>
    readFileSync(new URL(`../../src/cli/${name}.ts`, import.meta.url), 'utf8');
  for (const name of [
    'init/inspect',
    'provision',
    'doctor',
    'plan',
    'run',
    'shadow',
    'journal',
    'export',
    'verify',
    'recover',
  ]) {
    assert.match(read(name), /showProgress\(|withProgress\(/, name);
  }
  assert.match(read('program'), /if \(output\.json\) silenceProgress\(\)/);
});
