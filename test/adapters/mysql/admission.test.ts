// Goal: texts that the parser of MariaDB admitted are remembered within bounds. Method: many texts,
// and long ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AdmittedTexts } from '../../../src/adapters/mysql/admission.ts';

test('admitted texts are known until they are forgotten; long ones are not kept', () => {
  const admitted = new AdmittedTexts();
  admitted.add('select 1');
  assert.ok(admitted.has('select 1'));
  assert.ok(!admitted.has('select 2'));
  const [long, longer] = ['x'.repeat(10_000), 'x'.repeat(10_001)];
  for (const text of [long, longer]) admitted.add(text);
  assert.deepEqual([admitted.has(long), admitted.has(longer)], [true, false]);
  admitted.clear();
  assert.ok(!admitted.has('select 1'));
});

test('at most a thousand texts are kept', () => {
  const admitted = new AdmittedTexts();
  const texts = Array.from({ length: 1001 }, (_, index) => `select ${index}`);
  for (const text of texts.slice(0, 1000)) admitted.add(text);
  assert.ok(texts.slice(0, 1000).every((text) => admitted.has(text)));
  admitted.add(String(texts[1000]));
  assert.deepEqual(
    texts.filter((text) => admitted.has(text)),
    ['select 1000'],
  );
});
