// Goal: the pages quote the published figures and nothing else, and publishing takes complete runs
// only. Method: the tables of the real pages are made again and compared; then with one figure
// changed, which must show; then results of every kind are merged.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { TASK_NAMES } from '../../bench/data/mcpmark.ts';
import { mergePublished, type PublishedStudy, readPublished } from '../../bench/published.ts';
import { QUOTING_PAGES, renewTables } from '../../bench/report/quoted.ts';
import { describeContext } from '../../bench/results.ts';
import { atMost, exactly } from '../../bench/study.ts';

const pages = QUOTING_PAGES.map((file) => readFileSync(file, 'utf8'));

test('the pages agree with bench/published.json; "npm run bench -- publish" makes them', () => {
  const published = readPublished();
  assert.ok(published.length >= 5);
  for (const page of pages) {
    assert.match(page, /<!-- figures: [\w-]+ -->/);
    assert.equal(renewTables(page, published), page);
  }
});

test('a page that says another figure is noticed', () => {
  const changed = readPublished().map((one): PublishedStudy => {
    const cells = one.cells.map((cell) => ({ ...cell, value: (cell.value ?? 0) + 1 }));
    return { ...one, cells };
  });
  for (const page of pages) assert.notEqual(renewTables(page, changed), page);
  const comparison = pages.at(-1) ?? '';
  assert.match(renewTables(comparison, []), /in 27 runs of 3 database tasks \| not run \| not run/);
});

test('a study that was not run has no row on the first page', () => {
  const page = (published: readonly PublishedStudy[]) =>
    renewTables('<!-- figures: summary -->\n<!-- end of figures -->', published);
  const cells = [
    exactly('processes killed', 7, 'kills', 7),
    exactly('wrong or lost verdicts', 0, 'findings', 0),
  ];
  const kills = (study: string): PublishedStudy => ({ study, run: null, cells });
  assert.doesNotMatch(page([]), /not run|killed/);
  assert.match(page([kills('crashes')]), /\| 7 processes killed .+ \| {2}\| 0 \|/);
  assert.match(page([kills('crashes'), kills('crashes-long')]), /\| 7 processes killed/);
});

test('a missed target names the floor with the most of what is owed, or none', () => {
  const missed = (floors: readonly string[], figure: string) => {
    const cells = [atMost(figure, 9, 'x', 3), ...floors.map((name) => atMost(name, 2, 'x', 9))];
    const page = '<!-- figures: missed -->\n<!-- end of figures -->';
    const rows = renewTables(page, [{ study: 'pg-cost', run: null, cells }]).split('\n');
    return rows
      .find((row) => row.includes(figure))
      ?.split('|')
      .slice(-3, -1)
      .map((one) => one.trim());
  };
  const bare = '1 client: floor over direct';
  const needs = '1 client: floor with what protection needs over direct';
  const other = '1 client: floor with what certification needs over direct';
  const figure = '1 client: protected over direct';
  assert.deepEqual(missed([other, bare, needs], figure), ['2 x', needs]);
  assert.deepEqual(missed([other, bare], figure), ['2 x', bare]);
  assert.deepEqual(missed([other], figure), ['', '']);
  assert.deepEqual(missed([needs], 'something else'), ['', '']);
});

test('only complete results are published; others leave the older figures', () => {
  const old: PublishedStudy = { study: 'recovery', run: null, cells: [exactly('x', 1, 'runs', 1)] };
  const merge = (quick: boolean, end: 'cells' | 'failed' | 'notRun') => {
    const how = { quick, seed: 1, seeded: null, seconds: 1, code: 'code' };
    const context = describeContext(how);
    const cells = [exactly('x', 2, 'runs', 2)];
    const ends = {
      cells: { cells },
      failed: { failed: 'it broke' },
      notRun: { notRun: 'no data' },
    };
    const result = { study: 'recovery', context, ...ends[end] };
    const [merged] = mergePublished(
      [old],
      [{ name: 'recovery', about: '', result, isStale: false }],
    );
    return merged?.cells[0]?.value;
  };
  assert.equal(merge(false, 'cells'), 2);
  assert.equal(merge(true, 'cells'), 1);
  assert.equal(merge(false, 'failed'), 1);
  assert.equal(merge(false, 'notRun'), 1);
});

test("the MCPMark inventory has the paper's 21 tasks and counts of dispositions", () => {
  const page = readFileSync('docs/studies.md', 'utf8');
  const part = page.slice(page.indexOf('## The MCPMark inventory'), page.indexOf('## Studies'));
  const rows = part.split('\n').filter((line) => line.startsWith('| `'));
  const cells = rows.map((row) => row.split('|').map((text) => text.trim()));
  assert.equal(new Set(cells.map(([, task]) => task)).size, 21);
  for (const row of cells)
    assert.ok(row[4] !== undefined && row[4] !== '', `${row[1]} has a reason`);
  const count = (disposition: RegExp) =>
    cells.filter(([, , , given = '']) => disposition.test(given)).length;
  assert.deepEqual(
    [
      count(/^run$/),
      count(/setup|namespace|sequencing|business contract/),
      count(/(code|privileges) as output/),
      count(/physical design|catalogue audit|extension profile/),
    ],
    [3, 10, 5, 3],
  );
  for (const task of TASK_NAMES) assert.ok(part.includes(`\`chinook/${task}\``), task);
});

test('the README says its figures in one line that publishing writes', () => {
  const [readme = ''] = pages;
  assert.match(readme, /<!-- figures: sentence -->\d.+ wrong or lost<!-- end of figures -->/);
  assert.match(renewTables(readme, []), /not run wrong results became permanent/);
});

test('the comparison places every system that the paper names', () => {
  const page = readFileSync('docs/comparison.md', 'utf8');
  const part = page.slice(page.indexOf('## Related research'), page.indexOf('## When not to use'));
  const rows = part.split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.map((row) => row.split('|').map((text) => text.trim()));
  for (const name of [
    ...['CaMeL', 'Fides', 'Progent', 'ShieldAgent', 'DRIFT', 'AIRGuard', 'SecureClaw', 'CapLease'],
    ...['Temporary Authority', 'Cordon', 'Atomix', 'SagaLLM', 'Durable Functions', 'AFT'],
    'AgentSpec',
  ]) {
    const placed = cells.find(([, system]) => system === name);
    assert.ok(
      placed?.slice(2, 5).every((text) => text !== ''),
      `${name} is placed`,
    );
  }
});
