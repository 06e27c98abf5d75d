// Goal: no page of the documentation leads nowhere: links, anchors, commands and the figures they
// stand beside. Method: pages are read as text; verbs and flags come from the command itself,
// scripts from package.json, studies from bench.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { anchorsOf, linksOf, type Page, parsePage, proseOf, readPages } from './page.ts';
import { rejectionReasons } from './reasons.ts';

const pages = readPages();
const call = (...args: string[]) => execFileSync(process.execPath, args, { encoding: 'utf8' });

test('links and anchors inside the project lead somewhere', () => {
  const anchors = new Map(pages.map((page) => [page.file, anchorsOf(page)]));
  let links = 0;
  const others = ['CONTRIBUTING.md', 'SECURITY.md'].map((file) =>
    parsePage(file, readFileSync(file, 'utf8')),
  );
  for (const page of [...pages, ...others]) {
    for (const { file, anchor } of linksOf(page)) {
      links += 1;
      assert.ok(existsSync(file), `${page.file} leads to ${file}, which does not exist`);
      if (anchor === '') continue;
      const known = anchors.get(file);
      assert.ok(
        known?.has(anchor),
        `${page.file} leads to ${file}#${anchor}; there are ${[...(known ?? [])].join(', ')}`,
      );
    }
  }
  assert.ok(links > 100, `only ${links} links seen`);
});

/** Files and folders of the project that a page names between backticks; `*` matches any name. */
function pathsOf(page: Page): readonly string[] {
  const path = /`((?:src|test|docs|bench|examples|scripts)\/[\w./*-]+)`/g;
  return [...proseOf(page).matchAll(path)].map(([, name = '']) => name);
}

test('files and folders that pages name exist', () => {
  let seen = 0;
  for (const page of pages) {
    for (const path of pathsOf(page)) {
      seen += 1;
      assert.ok(globSync(path).length > 0, `${page.file} names ${path}, which does not exist`);
    }
  }
  assert.ok(seen > 80, `only ${seen} paths seen`);
  const [wrong = ''] = pathsOf(parsePage('page.md', 'Open `src/no-such-file.ts`.\n'));
  assert.deepEqual([wrong, globSync(wrong)], ['src/no-such-file.ts', []]);
});

/** Flags by verb, as the command's own help lists them. */
function readVerbs(): ReadonlyMap<string, readonly string[]> {
  const help = JSON.parse(call('src/cli/main.ts', 'help', '--json')) as {
    readonly verbs: readonly {
      readonly verb: string;
      readonly flags: { readonly flag: string }[];
    }[];
  };
  const verbs = help.verbs.map(({ verb, flags }) => [verb, flags.map(({ flag }) => flag)] as const);
  return new Map([...verbs, ['help', []], ['--help', []], ['--version', []]]);
}

/** Every command that a page names, in its blocks and between backticks. */
function commandsOf(page: Page, program: RegExp): readonly string[] {
  const spans = [...proseOf(page).matchAll(/`([^`]+)`/g)].map(([, code = '']) =>
    code.replace(/\s+/g, ' '),
  );
  const lines = page.blocks
    .filter(({ language }) => language === 'sh' || language === '')
    .flatMap(({ text }) => text.replace(/\\\n/g, ' ').split('\n'));
  return [...spans, ...lines].flatMap((text) =>
    [...text.matchAll(program)].map(([, rest = '']) => rest),
  );
}

test('commands of effectmatch that pages name exist, with their flags', () => {
  const verbs = readVerbs();
  assert.ok(verbs.size > 10);
  let seen = 0;
  for (const page of pages) {
    for (const command of commandsOf(
      page,
      /(?:^|npx |&& |\| |<\()effectmatch ((?:--)?[a-z<][^|;&]*)/g,
    )) {
      const [verb = '', ...words] = command.trim().split(/\s+/);
      if (verb === '<verb>') continue;
      const flags = verbs.get(verb);
      assert.ok(flags, `${page.file} names "effectmatch ${command}"; there is no such verb`);
      for (const flag of words.join(' ').matchAll(/(?:^|[ [|])(--[a-z-]+)/g)) {
        assert.ok(
          flags.includes(flag[1] ?? ''),
          `${page.file}: effectmatch ${verb} has no ${flag[1]}`,
        );
      }
      seen += 1;
    }
  }
  assert.ok(seen > 50, `only ${seen} commands seen`);
});

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  scripts: Record<string, string>;
};
const studies = call('bench/main.ts', 'list')
  .split('\n')
  .map((line) => line.split(' ')[0] ?? '');

/** What is wrong with `npm run …`; undefined where it exists. */
function findMissing(command: string): string | undefined {
  const [script = '', dashes, what = ''] = command.trim().split(/\s+/);
  if (!Object.hasOwn(scripts, script)) return `there is no script ${script}`;
  if (dashes !== '--') return undefined;
  if (
    script === 'bench' &&
    !/^(list|all|report|publish|<study>)$/.test(what) &&
    !studies.includes(what)
  )
    return `there is no study ${what}`;
  if (script === 'example' && what !== '<name>' && !existsSync(`examples/${what}/main.ts`))
    return `there is no example ${what}`;
  return undefined;
}

test('scripts, studies and examples that pages name exist', () => {
  let seen = 0;
  for (const page of pages) {
    for (const command of commandsOf(page, /npm run ([a-z][^|;&]*)/g)) {
      assert.equal(findMissing(command), undefined, `${page.file}: npm run ${command}`);
      seen += 1;
    }
  }
  assert.ok(seen > 10, `only ${seen} commands seen`);
  assert.equal(findMissing('bench -- no-such-study'), 'there is no study no-such-study');
});

/** Numbers with a unit of measurement, and shares: what somebody has measured or counted. */
const FIGURE =
  /\d[\d.,]*(?: |\u00a0)?(?:µs|%|×|writes\/s|ms per|times as)|\b(?:one|two|seven) (?:in a|of) (?:ten|hundred|thousand)\b|\b\d+ of \d+\b/;
const COMMAND = /`(?:npm (?:run|test)|effectmatch|npx effectmatch)\b[^`]*`/;

test('a measured figure stands beside the command that reproduces it', () => {
  let rows = 0;
  for (const page of pages.filter(({ file }) => !file.startsWith('docs/api/'))) {
    for (const section of proseOf(page).split(/^(?=#{1,6} )/m)) {
      const found = FIGURE.exec(section);
      assert.ok(
        !found || COMMAND.test(section),
        `${page.file}: no command in the section of "${found?.[0]}"`,
      );
      if (!/^#+ .*measured/i.test(section)) continue;
      for (const row of section
        .split('\n')
        .filter((line) => /^\| [^-]/.test(line) && /\d/.test(line))) {
        assert.match(row, COMMAND, `${page.file}: no command in ${row}`);
        rows += 1;
      }
    }
  }
  assert.ok(rows >= 5, `only ${rows} rows with measured figures seen`);
});

test('the evaluation tells figures by the name of the study that produces them', () => {
  const [, told = ''] = readFileSync('docs/studies.md', 'utf8').split('\n## Studies\n');
  const names = [...told.matchAll(/^\*\*([\w-]+)\.\*\*/gm)].map(([, name = '']) => name);
  assert.ok(names.length >= 5);
  for (const name of names) assert.ok(studies.includes(name), `there is no study ${name}`);
});

test('the runbook has every reason by which an attempt can be rejected', () => {
  const runbook = readFileSync('docs/runbook.md', 'utf8');
  const reasons = rejectionReasons();
  assert.ok(reasons.size > 45, `only ${reasons.size} reasons seen`);
  for (const reason of reasons)
    assert.ok(runbook.includes(`\`${reason}\``), `the runbook does not explain ${reason}`);
});

test('the glossary names what the code has', () => {
  const files = globSync('src/**/*.ts').filter((file) => !file.startsWith('src/testing/'));
  const code = files
    .map((file) => readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''))
    .join('\n');
  const declares = (name: string) =>
    /^[A-Z]/.test(name)
      ? new RegExp(`^export (?:interface|type|class) ${name}\\b`, 'm').test(code)
      : new RegExp(`\\b${name}\\b`).test(code);
  const rows = readFileSync('docs/glossary.md', 'utf8').matchAll(
    /^\| (?!term|-)(.+?) \|.*\| (.+?) \|$/gm,
  );
  const names = [...rows].flatMap(([, term = '', cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({ term, name })),
  );
  assert.ok(names.length > 70, `only ${names.length} names seen`);
  for (const { term, name } of names)
    assert.ok(declares(name), `"${term}": nothing in src is called ${name}`);
  assert.ok(
    !declares('Keepsake') && !declares('keepsake'),
    'a name that does not exist would be found',
  );
});

test('pictures are our own SVG files, readable by a screen reader and without scripts', () => {
  const files = globSync('docs/pictures/*.svg');
  assert.ok(files.length >= 3);
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    assert.match(text, /^<svg [^>]*viewBox="[^"]+"[^>]*role="img"/, file);
    assert.match(text, /<title>[^<]{10,}<\/title>/, file);
    assert.doesNotMatch(text, /<script|href="http|<image/, file);
    const depth = [...text.matchAll(/<(\/?)(\w+)[^>]*?(\/?)>/g)].reduce(
      (sum, [, close, , single]) => sum + (close === '/' ? -1 : single === '/' ? 0 : 1),
      0,
    );
    assert.equal(depth, 0, `${file}: an element is not closed`);
    assert.ok(
      pages.some((page) => linksOf(page).some((link) => link.file === file)),
      `${file} is shown nowhere`,
    );
  }
});

test('a page with an unknown note, or with a block that does not end, is not read', () => {
  assert.throws(
    () => parsePage('page.md', '<!-- not ran: it is slow -->\n'),
    /no comment like this/,
  );
  assert.throws(() => parsePage('page.md', '```sh\nls\n'), /not closed/);
  const [block] = parsePage('page.md', '<!-- not run: why -->\n\n```sh\nls\n```\n').blocks;
  assert.deepEqual(block?.notes, [{ kind: 'note', name: 'not run', value: 'why' }]);
  const [apart] = parsePage(
    'page.md',
    '<!-- not run: why -->\nText between.\n```sh\nls\n```\n',
  ).blocks;
  assert.deepEqual(apart?.notes, [], 'a note belongs to what stands right after it');
});

test('what the managed boundary guarantees less is the same on both pages, and no provider was run', () => {
  const weaker = (file: string) => {
    const lines = readFileSync(file, 'utf8').split('\n');
    const rows = lines.slice(lines.indexOf('| | server | managed | why |'));
    return rows.slice(0, rows.indexOf(''));
  };
  const deploy = 'docs/deploy-postgres.md';
  assert.ok(weaker(deploy).length > 5);
  assert.deepEqual(weaker(deploy), weaker('docs/guarantees.md'));
  const providers = readFileSync(deploy, 'utf8').match(/^#### .*$/gm) ?? [];
  assert.ok(providers.length >= 6);
  for (const heading of providers) assert.match(heading, / \(read, not run\)$/);
});
