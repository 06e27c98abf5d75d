// Goal: a study that was interrupted goes on where it stopped; a finished one, or one whose inputs changed, starts anew.
// Method: records in a folder of their own, with half a line at the end as a killed process leaves it.
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { RawRecords } from '../../bench/raw.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-raw-'));
const input = join(folder, 'input');
const name = `test-${process.pid}`;
const file = `bench/results/raw/${name}.jsonl`;
after(() => {
  rmSync(folder, { recursive: true });
  rmSync(file);
});

async function play(finish: boolean): Promise<readonly string[]> {
  const ran: string[] = [];
  const raw = new RawRecords(name, [input]);
  for (const run of ['one', 'two']) {
    const { value } = await raw.run(run, async () => {
      ran.push(run);
      return { value: 7 };
    });
    assert.equal(value, 7);
  }
  if (finish) raw.finish();
  return ran;
}

test('what was written is not run again until the study is finished or something changed', async () => {
  writeFileSync(input, 'a');
  assert.deepEqual(await play(false), ['one', 'two']);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  writeFileSync(file, `${lines.slice(0, -1).join('\n')}\n`);
  appendFileSync(file, '{"run":"tw');
  assert.deepEqual(await play(false), ['two'], 'half a record is none');
  assert.deepEqual(await play(true), []);
  assert.deepEqual(await play(false), ['one', 'two'], 'it was finished');
  writeFileSync(input, 'b');
  assert.deepEqual(await play(false), ['one', 'two'], 'its input changed');
});

test('two runs of one name are refused: one of them would count without having been run', async () => {
  const raw = new RawRecords(name, [input]);
  await raw.run('one', async () => ({}));
  await assert.rejects(
    raw.run('one', async () => ({})),
    /two runs are called "one"/,
  );
});
