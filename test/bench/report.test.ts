// Goal: the report shows every figure beside the paper's, says of each whether it matches, and can
// say that it does not. Method: small results of every kind, written and read back as studies do
// it; the page is taken apart tag by tag.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fingerprintOf, RawRecords, writeSamples } from '../../bench/raw.ts';
import { renderPage } from '../../bench/report/page.ts';
import { verdictOf } from '../../bench/report/verdict.ts';
import { gatherEntries, writeReport } from '../../bench/report/write.ts';
import { describeContext, writeResult } from '../../bench/results.ts';
import { atMost, type Cell, exactly, figure, medianCell, reproduced } from '../../bench/study.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-report-'));
process.env.EFFECTMATCH_BENCH_RESULTS = join(folder, 'results');
after(() => rmSync(folder, { recursive: true }));

const HOSTILE = `</td><script>alert("1")</script> & 'q' | pipe`;
const context = (quick: boolean) =>
  describeContext({
    quick,
    seed: 42,
    seeded: null,
    seconds: 1.5,
    code: quick ? 'older' : fingerprintOf([]),
  });
const finish = (study: string, cells: readonly Cell[], quick = false) =>
  writeResult({ study, context: context(quick), cells: [...cells] });

finish('public-outcomes', [
  reproduced('(b) direct: omit, wrong commit', 36, 'runs', 36),
  reproduced('(b) EffectMatch: omit, wrong commit', 1, 'runs', 0),
  reproduced(HOSTILE, 9, 'runs', 9),
]);
finish('cost', [
  { ...figure('STATE travel/one: held over direct', 2.5, 'x'), paper: 4.35 },
  { ...atMost('STATE: median of held over direct', 3.25, 'x', 3), paper: 4.35 },
  figure('STATE: the barest path with the same flushes, over direct', 2.75, 'x'),
  figure('comparison of 1 effects', 0.004, 'ms'),
  { ...atMost('comparison of 500 effects', 0.4, 'ms', 0.5), paper: 2.92 },
  atMost('nothing was measured', Number.NaN, 'ms', 1),
]);
finish('information', [exactly('pairs', 6, 'pairs', 6)], true);
const records = new RawRecords('cost', []);
await records.run('state|travel/one', async () => ({
  direct: [1, 2, 3],
  held: [2, 4, 9],
  bare: [],
}));
records.finish();
const timed = [
  medianCell('protected, median', [2, 4, 3, 9, 5], 'us', 1),
  medianCell("protected, client's processor", [1, 1, 2, 2, 1], 'us', 1),
  figure('time to path:claimed', 3, 'us'),
  figure('time to path:promoted', 1, 'us'),
];
finish(
  'sqlite-cost',
  timed.map(({ samples: _, ...cell }) => cell),
);
writeSamples('sqlite-cost', timed);
writeResult({ study: 'backends', context: context(false), notRun: 'there is no <data>' });
writeResult({ study: 'recovery', context: context(false), failed: 'it broke <here>' });

const names = [
  ...['public-outcomes', 'cost', 'information', 'backends', 'recovery', 'topologies'],
  'sqlite-cost',
];
const entries = gatherEntries(
  names.map((name) => ({ name, about: `about ${name}` })),
  false,
);
const files = writeReport(entries);
const [html = '', markdown = ''] = files.map((file) => readFileSync(file, 'utf8'));

test('a figure is judged from its value and target, whatever the study said about it', () => {
  const cell = { name: 'x', unit: 'runs', value: 1, target: '= 0', paper: 0, ok: true };
  assert.equal(verdictOf(cell), 'DIFFERS FROM THE PAPER');
  assert.equal(verdictOf({ ...cell, value: 0 }), 'matches the paper');
  assert.equal(verdictOf({ ...cell, value: 0, ok: false }), 'DIFFERS FROM THE PAPER');
  assert.equal(
    verdictOf({ ...cell, target: '<= 0.5', paper: 2.92, value: 0.4 }),
    'meets its target',
  );
  assert.equal(
    verdictOf({ ...cell, target: '<= 0.5', paper: 2.92, value: 0.6 }),
    'MISSES ITS TARGET',
  );
  assert.equal(verdictOf({ ...cell, target: '>= 5', value: 4 }), 'MISSES ITS TARGET');
  assert.equal(verdictOf({ ...cell, target: 'about 5', value: 5 }), 'MISSES ITS TARGET');
  assert.equal(verdictOf({ name: 'x', unit: '', value: null, ok: true }), 'MISSES ITS TARGET');
  assert.equal(verdictOf({ name: 'x', unit: '', value: 3, ok: true }), 'reported');
});

test('mismatches are shown as such, above everything else and in their row', () => {
  for (const text of [html, markdown]) {
    assert.match(text, /Figures that do not match: 3/);
    assert.equal(text.split('omit, wrong commit').length > 3, true);
  }
  const rowOf = (name: string) =>
    html
      .split('<tr')
      .filter((row) => row.includes(`<td>${name}</td>`))
      .join();
  assert.match(rowOf('(b) EffectMatch: omit, wrong commit'), /class="bad".*DIFFERS FROM THE PAPER/);
  assert.match(
    rowOf('(b) direct: omit, wrong commit'),
    /class="good".*>36 runs<.*>36<.*matches the paper/,
  );
  assert.match(
    rowOf('STATE: median of held over direct'),
    />3.25 x<.*>4.35<.*>≤ 3<.*MISSES ITS TARGET/,
  );
  const bad = html.slice(html.indexOf('id="mismatches"'), html.indexOf('id="breadth"'));
  assert.match(
    bad,
    />≤ 3<\/td><td class="number">2.75 x<br\/><small [^>]*>bare<\/small><\/td><td>MISSES/,
  );
  assert.match(bad, /nothing was measured<.*>≤ 1<\/td><td class="number"><\/td><td>MISSES/);
  assert.match(rowOf('comparison of 500 effects'), />0.400 ms<.*>2.92<.*meets its target/);
  assert.match(rowOf('nothing was measured'), />none ms<.*MISSES ITS TARGET/);
});

test('what was not run, failed or was only tried is named so, with the context of every run', () => {
  for (const [text, data, here] of [
    [html, '&lt;data&gt;', '&lt;here&gt;'],
    [markdown, '\\<data\\>', '\\<here\\>'],
  ] as const) {
    assert.ok(text.includes(`not run: there is no ${data}`));
    assert.ok(text.includes(`FAILED: it broke ${here}`));
    assert.match(text, /topologies/);
    assert.match(text, /quick: too few repetitions to quote; the code has changed since/);
    assert.doesNotMatch(text, /complete; the code has changed since/);
    assert.ok(text.includes(`Node.js ${process.version}`));
    assert.match(text, /UTC, 1.5 s; .*\d cores; nothing is drawn at random/);
  }
  assert.match(markdown, /\| topologies \| not run \|/);
});

test('the page is well-formed, needs nothing beside itself, and runs nothing', () => {
  const open: string[] = [];
  const rest = html.replace(
    /<(\/?)([a-z][a-z0-9]*)((?: [a-zA-Z0-9-]+="[^"<>]*")*)(\/?)>/g,
    (_, closes, name, __, isEmpty) => {
      if (closes) assert.equal(open.pop(), name);
      else if (!isEmpty) open.push(name);
      return '';
    },
  );
  assert.deepEqual(open, []);
  assert.equal(
    rest.replace('<!doctype html>', '').search(/[<>]/),
    -1,
    'nothing that looks like a tag is left',
  );
  assert.doesNotMatch(html, /<script|<link|<img|<iframe| src=|url\(|@import|https?:/);
  for (const [, target = ''] of html.matchAll(/ href="([^"]*)"/g))
    assert.match(target, /^#|^\.\.\/results\//, 'a link leads into the page or to our own records');
  assert.equal(html.match(/<svg/g)?.length, 5, 'wrong commits, times of tasks, growth; two more');
  assert.match(html, /@media screen and \(prefers-color-scheme: dark\)/, 'paper is white');
  assert.match(html, /@media print/);
  assert.ok(
    markdown.includes(`'q' \\| pipe | 9 runs | 9 | = 9 |`),
    'a pipe in a name ends no column',
  );
});

test('what a reader takes away first is counted from the figures', () => {
  const tiles = html.slice(html.indexOf('class="tiles"'), html.indexOf('</header>'));
  assert.match(
    tiles,
    /class="tile bad" href="#[a-z-]+"><b>2 of 3<\/b><span>counts of the paper reproduced/,
  );
  assert.match(
    tiles,
    /class="tile bad" href="#[a-z-]+"><b>2 of 4<\/b><span>targets of our own met/,
  );
  assert.match(
    tiles,
    /class="tile bad" href="#[a-z-]+"><b>36 → 1<\/b><span>wrong results committed/,
  );
  assert.match(tiles, /<b>4 of 7<\/b><span>studies run, 1 of them only quickly/);
});

test('plots show the recorded samples, and populations the recorded runs', () => {
  assert.match(html, /<title>held: median 4.00, p95 9.00 ms, 3 samples<\/title>/);
  assert.match(html, /<title>EffectMatch: 1, paper 0<\/title>/);
  assert.match(html, /<title>until it returns: median 0.00400, p95 0.00900 ms, 5 samples<\/title>/);
  assert.match(html, /<title>client&#39;s processor: median 0.00100, .*, 5 samples<\/title>/);
  assert.match(html, /<title>to claimed: 0.00300 ms<\/title>.*>0.00400 ms<\/text>/);
  const row = html.split('<tr>').find((one) => one.includes('Cost of an execution')) ?? '';
  assert.match(row, />1080<\/td><td class="number">6</, 'three samples of each side');
  assert.match(html, /href="\.\.\/results\/raw\/cost\.jsonl">1 raw record</);
  assert.match(html, /<code>npm run bench -- cost --seed 42<\/code>/);
});

test('a study whose long run draws the same leaves the figure to it', () => {
  const run = (name: string, kills: number) => {
    finish(name, [exactly('path:claimed | files', kills, 'kills', kills)]);
    return { name, about: `about ${name}` };
  };
  const [short, long] = [run('crashes', 5), run('crashes-long', 60)];
  const draw = (...studies: (typeof short)[]) => renderPage(gatherEntries(studies, false));
  assert.match(draw(short), />5 of 5</);
  const both = draw(short, long);
  assert.doesNotMatch(both, />5 of 5</);
  assert.match(both, /href="#crashes-long">crashes-long<\/a> shows the same[\s\S]*>60 of 60</);
});

test('every figure leads to its study, and from there to its command and raw records', () => {
  const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const tiles = [...html.matchAll(/<a class="tile [a-z]+" href="#([^"]+)"/g)];
  assert.equal(tiles.length, 4);
  for (const [, target = ''] of html.matchAll(/ href="#([^"]*)"/g))
    assert.ok(ids.has(target), `nothing is called ${target}`);
  const bad = html.slice(html.indexOf('id="mismatches"'), html.indexOf('id="breadth"'));
  assert.match(bad, /<a href="#public-outcomes">public-outcomes<\/a>: \(b\) EffectMatch: omit/);
  for (const name of ['public-outcomes', 'cost', 'sqlite-cost', 'information']) {
    const quick = name === 'information' ? ' --quick' : '';
    const command = `npm run bench -- ${name}${quick} --seed 42`;
    const file = `../results/${name}${quick === '' ? '' : '-quick'}.json`;
    assert.ok(html.includes(`<code>${command}</code> · <a href="${file}">figures</a>`), name);
    assert.ok(markdown.includes(`\`${command}\` · [figures](${file})`), name);
  }
  const first = html.slice(html.indexOf('<figure>'), html.indexOf('id="mismatches"'));
  assert.match(first, /<code>npm run bench -- public-outcomes/, 'also below the first figures');
});

test('a complete result is shown before a quick one, unless the quick one is asked for', () => {
  finish('information', [exactly('pairs', 38, 'pairs', 38)]);
  const shown = (quick: boolean) =>
    gatherEntries([{ name: 'information', about: '' }], quick)[0]?.result?.context.quick;
  assert.deepEqual([shown(false), shown(true)], [false, true]);
});
