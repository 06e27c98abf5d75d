// Goal: an administrator learns from a refusal what changed, and nothing else. Method: pairs of
// surveys with their definitions, made by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainChange, keepDefinitions } from '../../../src/adapters/mysql/changes.ts';
import type { Definitions } from '../../../src/adapters/mysql/definitions.ts';
import type { Outlet, Survey } from '../../../src/protocol/boundary.ts';

const RELATION: Outlet = { outlet: 'relation t', disposition: 'observed', by: 'recorders' };

function surveyOf(texts: Record<string, string> | undefined, ...outlets: Outlet[]): Survey {
  const definitions = { texts: new Map(Object.entries(texts ?? {})) } as unknown as Definitions;
  if (texts !== undefined) keepDefinitions(outlets, definitions);
  return { outlets } as unknown as Survey;
}

test('new, changed and removed definitions are named; equal ones are not', async () => {
  const before = surveyOf({ same: 'x', old: 'y', changed: 'a int, b int' }, RELATION);
  const after = surveyOf({ same: 'x', new: 'z', changed: 'a int, c int' }, RELATION);
  assert.deepEqual(await explainChange(before, after), [
    'new: not there → there',
    'changed: "a int, b int" → "a int, c int"',
    'old: there → gone',
  ]);
});

test('outlets that are closed by something else, or open, are named with both readings', async () => {
  const open: Outlet = { outlet: 'relation t', disposition: 'unclassified', by: 'its recorder' };
  assert.deepEqual(await explainChange(surveyOf({}, RELATION), surveyOf({}, open)), [
    'relation t: "observed, recorders" → "unclassified, its recorder"',
  ]);
});

test('without the definitions of both surveys only outlets are compared', async () => {
  const [unknown, known] = [surveyOf(undefined, RELATION), surveyOf({ table: 'x' }, RELATION)];
  assert.deepEqual(await explainChange(unknown, known), []);
  assert.deepEqual(await explainChange(known, unknown), []);
});

test('of long texts the part around the first difference is shown', async () => {
  const long = (tail: string) => `${'x'.repeat(300)}${tail}${'y'.repeat(300)}`;
  const [line] = await explainChange(surveyOf({ t: long('1') }), surveyOf({ t: long('2') }));
  const part = (tail: string) => `"…${'x'.repeat(20)}${tail}${'y'.repeat(59)}…"`;
  assert.equal(line, `t: ${part('1')} → ${part('2')}`);
  const whole = 'x'.repeat(300);
  const [grown] = await explainChange(surveyOf({ t: whole }), surveyOf({ t: `${whole}end` }));
  assert.equal(grown, `t: "…${'x'.repeat(20)}" → "…${'x'.repeat(20)}end"`);
  const [longer] = await explainChange(surveyOf({ t: 'abc' }), surveyOf({ t: 'abcd' }));
  assert.equal(longer, 't: "abc" → "abcd"');
});
