// Goal: the study of public tasks counts what happened: it finds the paper's figures, and others
// where the runtime is broken. Method: approvals against the recorded clean states and expected
// rows, which they never see; the study with few runs; a runtime without comparison.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { approveState } from '../../bench/approvals/index.ts';
import { approveRows, rowsOf, type TextRow } from '../../bench/approvals/rows.ts';
import { findData } from '../../bench/data/folder.ts';
import { MCPMARK_FILES, TASK_NAMES } from '../../bench/data/mcpmark.ts';
import { applyPatch } from '../../bench/data/patch.ts';
import { loadStateTasks, STATE_FILES, type StateTask } from '../../bench/data/state-bench.ts';
import { NATIVE_FILES } from '../../bench/data/state-native.ts';
import { RawRecords } from '../../bench/raw.ts';
import { compareFigures, recompute } from '../../bench/recompute.ts';
import {
  findForbidden,
  loadParser,
  splitStatements,
} from '../../bench/studies/public-outcomes/call-rules.ts';
import { countWrong } from '../../bench/studies/public-outcomes/database.ts';
import { openDatabaseSite } from '../../bench/studies/public-outcomes/database-site.ts';
import { PAPER, predict } from '../../bench/studies/public-outcomes/reference.ts';
import { replayVariant, withFinal } from '../../bench/studies/public-outcomes/replay.ts';
import {
  CONDITIONS,
  type Condition,
} from '../../bench/studies/public-outcomes/state-conditions.ts';
import {
  cleanReference,
  countRuns,
  runStatePlan,
  type StateVariant,
} from '../../bench/studies/public-outcomes/state-runs.ts';
import { publicOutcomesStudy } from '../../bench/studies/public-outcomes.ts';
import { NotRun } from '../../bench/study.ts';
import { demandRecomputed } from './recomputed.ts';

const results = mkdtempSync(join(tmpdir(), 'effectmatch-outcomes-'));
process.env.EFFECTMATCH_BENCH_RESULTS = results;
after(() => rmSync(results, { recursive: true }));

const data = whereData();
const skip = data instanceof NotRun ? `no public task data: ${data.message}` : false;
const folder = data instanceof NotRun ? '' : data;

function whereData(): string | NotRun {
  try {
    return findData(undefined, [...STATE_FILES, ...NATIVE_FILES, ...MCPMARK_FILES]);
  } catch (error) {
    if (error instanceof NotRun) return error;
    throw error;
  }
}

test('a folder without the data is not run, and says which file is missing', async () => {
  await assert.rejects(
    publicOutcomesStudy.run({ quick: true, data: 'test', progress: () => {} }),
    (error) => error instanceof NotRun && /tasks\.jsonl.*--data/.test(error.message),
  );
});

/** One task that changes one field; the fault leaves another value in it. */
const SMALL_TASK: StateTask = {
  packet: {
    ...{ domain: 'small', taskId: 'one', now: '', userId: 'u', messages: [], reference: {} },
    initial: { items: { a: { price: 1 } } },
  },
  ...{
    cohort206: true,
    approved12: false,
    liveAgent6: false,
    timing18: false,
    firstWrite: 0,
    firstMutation: 0,
    writeCount: 1,
  },
  calls: [
    {
      tool: 'set',
      arguments: {},
      error: false,
      diff: [{ op: 'replace', path: '/items/a/price', value: 2 }],
    },
  ],
  variants: {
    clean: {
      final: { items: { a: { price: 2 } } },
      equalsClean: true,
      equalsInitial: false,
      nativeStatePass: true,
      errors: new Map(),
    },
  },
};
const SMALL_VARIANTS: readonly StateVariant[] = [
  { name: 'clean', calls: (task) => replayVariant(task, 'clean') },
  {
    name: 'fault',
    calls: (task) =>
      withFinal(replayVariant(task, 'clean'), () => ({ items: { a: { price: 3 } } })),
  },
];

/**
 * Runs the small task as EffectMatch and under a condition that makes everything durable and says
 * that it did not.
 */
async function countSmall(condition: Condition, variant: string) {
  const raw = new RawRecords(`test-small-${process.pid}-${condition.name}-${variant}`, []);
  const plan = {
    part: 'small',
    tasks: [SMALL_TASK],
    variants: SMALL_VARIANTS,
    conditions: [condition],
  };
  const runs = await runStatePlan(
    { ...plan, repetitions: 1, approve: cleanReference },
    [SMALL_TASK],
    raw,
    () => {},
  );
  raw.finish();
  return countRuns(runs, variant, condition);
}

test('a state that is durable although it is said to be rejected counts as wrong', async () => {
  const liar: Condition = {
    ...CONDITIONS.direct,
    run: async (execution, place) => ({
      ...(await CONDITIONS.direct.run(execution, place)),
      committed: false,
    }),
  };
  assert.deepEqual(await countSmall(liar, 'fault'), {
    runs: 1,
    right: 0,
    saved: 0,
    wrong: 1,
    kept: 0,
    spoilt: 1,
  });
  assert.deepEqual(await countSmall(liar, 'clean'), {
    runs: 1,
    right: 1,
    saved: 0,
    wrong: 0,
    kept: 0,
    spoilt: 1,
  });
  const { effectMatch, direct } = CONDITIONS;
  assert.deepEqual(await countSmall(effectMatch, 'fault'), {
    ...{ runs: 1, right: 0, saved: 0, wrong: 0, kept: 1, spoilt: 0 },
  });
  assert.deepEqual(await countSmall(direct, 'fault'), {
    runs: 1,
    right: 0,
    saved: 0,
    wrong: 1,
    kept: 0,
    spoilt: 0,
  });
});

test('rows that are durable although they are said to be rejected count as wrong', () => {
  const run = { committed: false, isApproved: false, isInitial: false };
  assert.equal(countWrong([run]), 1);
  assert.equal(countWrong([{ ...run, isInitial: true }]), 0, 'nothing happened');
  assert.equal(
    countWrong([{ ...run, committed: true, isInitial: true }]),
    1,
    'said to be committed, and is not',
  );
});

test('a patch that does not fit its document is refused', () => {
  const document = { a: { b: 1 } };
  assert.deepEqual(applyPatch(document, [{ op: 'replace', path: '/a/b', value: 2 }]), {
    a: { b: 2 },
  });
  assert.deepEqual(document, { a: { b: 1 } });
  assert.throws(
    () => applyPatch(document, [{ op: 'add', path: '/a/b', value: 2 }]),
    /does not fit/,
  );
  assert.throws(() => applyPatch(document, [{ op: 'remove', path: '/a/c' }]), /does not fit/);
  assert.throws(
    () => applyPatch(document, [{ op: 'replace', path: '/x/b', value: 2 }]),
    /leads nowhere/,
  );
});

test('call-level rules see visible writes, in common table expressions too, and nothing else', async () => {
  await loadParser();
  const policy = new Set(['insert Customer']);
  assert.equal(findForbidden(['insert into "Customer" select 1'], policy), undefined);
  assert.equal(findForbidden(['update public."Genre" set "Name" = null'], policy), 'update Genre');
  assert.equal(
    findForbidden(
      ['with gone as (delete from "Genre" returning 1) insert into "Customer" select * from gone'],
      policy,
    ),
    'delete Genre',
  );
  assert.equal(findForbidden(['drop table "Genre"'], policy), 'DropStmt');
  assert.equal(
    findForbidden(['insert into other."Customer" select 1'], policy),
    'insert other.Customer',
  );
  assert.deepEqual(splitStatements("select 'ü;'; -- two\nselect 2;"), ["select 'ü;'", 'select 2']);
});

test('the twelve approvals, calculated from requests, are the recorded clean results', {
  skip,
}, () => {
  const tasks = loadStateTasks(folder).filter(({ approved12 }) => approved12);
  assert.equal(tasks.length, 12);
  for (const { packet, variants } of tasks)
    assert.deepEqual(approveState(packet), variants.clean?.final, packet.taskId);
});

test('a request that the customer did not make is not approved', { skip }, () => {
  const task = loadStateTasks(folder).find(
    ({ packet }) => packet.taskId === '11-cancel_before_shipment',
  );
  assert.ok(task);
  const silent = { ...task.packet, messages: ['Where is my order ORD-6015?'] };
  assert.throws(() => approveState(silent), /does not ask for/);
});

test('over all 206 tasks the recorded flags predict the figures of the paper', { skip }, () => {
  const tasks = loadStateTasks(folder).filter(({ cohort206 }) => cohort206);
  assert.equal(tasks.length, 206);
  for (const { condition, clean, saved, omit, duplicate } of PAPER) {
    const predicted = predict(tasks, condition);
    const found = [predicted.clean, predicted.omit, predicted.duplicate].map((count) => count * 3);
    assert.deepEqual(found, [clean, omit, duplicate], condition.name);
    if (saved !== undefined) assert.equal(predicted.saved * 3, saved);
  }
});

interface Listed {
  readonly columns?: readonly string[];
  readonly [rows: string]: unknown;
}

test('the approved rows of the database tasks are those computed outside of this project', {
  skip,
}, async () => {
  await using site = await openDatabaseSite(folder);
  const compared: string[] = [];
  for (const name of TASK_NAMES) {
    const packet = await site.packet(name);
    const tables = approveRows(packet);
    const expected: Record<string, Listed> = JSON.parse(
      readFileSync(join(folder, `mcpmark/expected/${name}.json`), 'utf8'),
    );
    for (const [relation, { columns, ...lists }] of Object.entries(expected)) {
      if (columns === undefined) continue;
      const textOf = (row: TextRow) => JSON.stringify(columns.map((column) => row[column]));
      const initial =
        lists.inserted_rows === undefined ? [] : rowsOf(packet.initial, relation).map(textOf);
      const approved = rowsOf(tables, relation).map(textOf).sort();
      // The order of equally sold tracks is that of the names in the database, so there is a list
      // for each collation.
      const choices = Object.entries(lists).filter(([key]) => /rows/.test(key)) as [
        string,
        unknown[][],
      ][];
      const matching = choices.filter(([, rows]) => {
        const texts = rows.map((row) =>
          JSON.stringify(row.map((value) => (value === null ? null : String(value)))),
        );
        return isDeepStrictEqual([...initial, ...texts].sort(), approved);
      });
      assert.equal(matching.length, 1, `${name}, ${relation}`);
      compared.push(relation);
    }
    if (name === 'employee_hierarchy_management') {
      const changed = expected.Customer?.changed as readonly Record<string, number>[];
      const agents = new Map(
        rowsOf(tables, 'Customer').map((row) => [row.CustomerId, row.SupportRepId]),
      );
      for (const { CustomerId, SupportRepId_after } of changed) {
        assert.equal(agents.get(String(CustomerId)), String(SupportRepId_after));
      }
      const differing = rowsOf(packet.initial, 'Customer').filter(
        (row) => row.SupportRepId !== agents.get(row.CustomerId ?? ''),
      );
      assert.equal(differing.length, changed.length);
    }
  }
  assert.deepEqual(compared, [
    'Customer',
    'Employee',
    'employee_performance',
    'monthly_sales_summary',
    'top_music_charts',
  ]);
});

test('every condition ends as the paper says, and without comparison wrong results are committed', {
  skip,
}, async () => {
  const cells = await publicOutcomesStudy.run({ quick: true, data: folder, progress: () => {} });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
  );
  demandRecomputed('public-outcomes', cells);
  const figureOf = (name: string) => cells.find((cell) => cell.name === name)?.value;
  assert.equal(figureOf('(a) EffectMatch: faults rejected by comparison, rows kept'), 4);
  assert.equal(figureOf('(b) direct: omit, wrong commit'), 12);
  assert.equal(figureOf('(b) EffectMatch: omit, wrong commit'), 0);
  assert.equal(figureOf('(c) EffectMatch: rejected, but durable'), 0);
  assert.ok(
    Number(figureOf('(c) no comparison: omit, wrong commit')) > 0,
    'the ablation changes the figures',
  );
  const own = '(b) own tools, direct: extra field, wrong commit';
  assert.equal(figureOf(own), 3, 'with our own tools too');

  const file = join(results, 'raw', 'public-outcomes-quick.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const kept = lines.map((line) => JSON.parse(line)).filter(({ states }) => states !== undefined);
  const again = recompute('public-outcomes', kept);
  assert.ok(again.size >= 30, `${again.size} figures`);
  const { differing, unsupported } = compareFigures(cells, again);
  assert.deepEqual([differing, unsupported], [[], []]);
  const altered = kept.map((one) =>
    one.condition === 'EffectMatch' && one.variant === 'clean'
      ? { ...one, states: { ...one.states, durable: 'something else' } }
      : one,
  );
  assert.equal(recompute('public-outcomes', altered).get('(c) EffectMatch: clean, right state'), 0);
});
