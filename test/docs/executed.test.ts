// Goal: a reader who follows README and docs from an empty folder sees what the pages say; no
// command or snippet is stale. Method: every fenced block of every page is executed, type-checked
// or parsed, against the built package and a fresh PostgreSQL; a block that cannot be says why.
// `page.ts` lists the notes by which pages say what a block needs.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeReference } from '../../scripts/api-reference.mjs';
import { startServer, type TestServer } from '../postgres/server.ts';
import { type Desk, Installation } from './desk.ts';
import { type Block, type Note, noteOf, type Page, readPages } from './page.ts';

/** What is done with a block of each language; a language that is not here fails. */
const LANGUAGES = ['', 'sh', 'ts', 'sql', 'json', 'ini'];

const pages = readPages().filter(({ file }) => !file.startsWith('docs/api/'));
const installation = new Installation();
let server: Promise<TestServer> | undefined;
after(async () => {
  await (await server)?.stop();
  installation[Symbol.dispose]();
});

const placeOf = ({ page, line }: Block) => `${page}:${line}`;
const isProgram = ({ items }: Page) =>
  items.some((item) => item.kind === 'note' && item.name === 'program');
const quotedFrom = ({ items }: Page) =>
  items.flatMap((item) =>
    item.kind === 'note' && item.name === 'quoted' ? item.value.split(' ') : [],
  );

async function openDesk(name: string, wish: string): Promise<Desk> {
  const unique = name.replace(/[^\w-]/g, '-');
  if (wish === '') return installation.desk(unique);
  const [product, database] = wish.split(' ');
  assert.equal(product, 'PostgreSQL', `${name}: a folder comes with PostgreSQL or with nothing`);
  server ??= startServer();
  return installation.desk(unique, await (await server).createDatabase(database));
}

/** A page in parts that share nothing: a new folder begins a new part. */
function partsOf({ items }: Page): readonly (readonly (Block | Note)[])[] {
  const parts: (Block | Note)[][] = [[]];
  for (const item of items) {
    if (item.kind === 'note' && item.name === 'folder') parts.push([]);
    parts.at(-1)?.push(item);
  }
  return parts.filter((part) => part.some(({ kind }) => kind === 'block'));
}

/** Follows a part of a page from its first block to its last. */
async function follow(page: Page, part: readonly (Block | Note)[]): Promise<void> {
  const [start] = part;
  const [name = '', wish = ''] =
    start?.kind === 'note' && start.name === 'folder' ? start.value.split(', ') : [];
  const desk = await openDesk(`${page.file}-${name}`, wish);
  for (const item of part) {
    if (item.kind === 'block' && noteOf(item, 'not run') === undefined) await take(item, desk);
  }
}

/** Runs the program that the blocks of a page make together. */
async function runProgram(page: Page): Promise<void> {
  const desk = await openDesk(`${page.file}-program`, '');
  desk.save('program.ts', programOf(page));
  await desk.runProgram('program.ts');
  desk.assertPrinted(shownBy(programOf(page)).join('\n'), page.file);
}

/**
 * What a program says that it prints: lines that are comments, and those beside a verdict that it
 * prints.
 */
const shownBy = (program: string) =>
  [...program.matchAll(/^(?:console\.log\(.*\.kind\);? +)?\/\/ (.+)$/gm)].map(
    ([, line = '']) => line,
  );

/** What the comments of a block of commands say that it prints. */
const promisedBy = (commands: string) =>
  [...commands.matchAll(/ # prints "(.+)"$/gm)].map(([, line = '']) => line);

async function take(block: Block, desk: Desk): Promise<void> {
  const file = noteOf(block, 'save as');
  if (file !== undefined) desk.save(file, block.text);
  switch (block.language) {
    case 'sh':
      await desk.run(block.text);
      return desk.assertPrinted(promisedBy(block.text).join('\n'), placeOf(block));
    case 'sql':
      return await desk.runSql(block.text);
    case '':
      if (noteOf(block, 'printed') !== undefined) desk.assertPrinted(block.text, placeOf(block));
      return;
  }
}

const withGiven = (block: Block) => `${noteOf(block, 'given') ?? ''}\n${block.text}`;
const programOf = ({ blocks }: Page) =>
  blocks
    .filter(({ language }) => language === 'ts')
    .map(withGiven)
    .join('\n');

describe('pages', { concurrency: 3 }, () => {
  for (const page of pages) {
    for (const [index, part] of partsOf(page).entries()) {
      test(`${page.file}, part ${index + 1}, can be followed from its first line to its last`, () =>
        follow(page, part));
    }
    if (isProgram(page))
      test(`${page.file} is a program that prints what it says`, () => runProgram(page));
  }
});

test('a command that fails and a line that was not printed are noticed', async () => {
  const desk = installation.desk('noticed');
  await desk.run('echo one; echo two');
  desk.assertPrinted('one\nt…', 'here');
  assert.deepEqual(
    promisedBy('echo one # prints "one"\necho two\necho three    # prints "th…"\n'),
    ['one', 'th…'],
  );
  assert.throws(() => desk.assertPrinted('two\none', 'here'), /nothing printed is/);
  await assert.rejects(desk.run('false\necho three'));
});

test('every block is in a language that the tests know, and one that is not run says why', () => {
  let blocks = 0;
  for (const page of readPages()) {
    for (const block of page.blocks) {
      blocks += 1;
      assert.ok(
        LANGUAGES.includes(block.language),
        `${placeOf(block)}: no test knows ${block.language}`,
      );
      const reason = noteOf(block, 'not run');
      assert.ok(
        reason === undefined || reason.length > 20,
        `${placeOf(block)}: say why it is not run`,
      );
    }
  }
  assert.ok(blocks > 60, `only ${blocks} blocks seen`);
});

test('snippets in TypeScript compile against the built package', () => {
  const folder = join(installation.folder, 'snippets');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const files: string[] = [];
  const add = (page: Page, name: string, code: string) => {
    const file = join(page.file.replace(/\W/g, '-'), name);
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), `${code}\nexport {};\n`);
    files.push(file);
  };
  for (const page of pages) {
    if (quotedFrom(page).length > 0) continue;
    const blocks = page.blocks.filter(
      (block) => block.language === 'ts' && noteOf(block, 'not run') === undefined,
    );
    if (isProgram(page)) add(page, 'program.ts', programOf(page));
    else
      for (const block of blocks)
        add(page, noteOf(block, 'save as') ?? `line-${block.line}.ts`, withGiven(block));
  }
  assert.ok(files.length > 10, `only ${files.length} snippets seen`);
  const compilerOptions = {
    ...{
      target: 'esnext',
      lib: ['esnext'],
      types: ['node'],
      module: 'nodenext',
      moduleResolution: 'nodenext',
    },
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true, noEmit: true },
    allowImportingTsExtensions: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const found = compile(folder);
  assert.equal(found, '', found);
  const [first = ''] = files;
  writeFileSync(
    join(folder, first),
    `${readFileSync(join(folder, first), 'utf8')}\nconst wrong: number = 'text';\n`,
  );
  assert.match(compile(folder), /TS2322/, 'an error would be found');
});

function compile(folder: string): string {
  try {
    return execFileSync('node_modules/.bin/tsc', ['-p', join(folder, 'tsconfig.json')], {
      encoding: 'utf8',
    });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test('SQL, JSON and settings that are only shown can be parsed', async () => {
  const { parse } = await import('libpg-query');
  for (const block of pages.flatMap(({ blocks }) => blocks)) {
    if (block.language === 'json')
      assert.doesNotThrow(() => JSON.parse(block.text), placeOf(block));
    if (block.language === 'sql')
      await assert.doesNotReject(async () => await parse(block.text), placeOf(block));
    if (block.language !== 'ini') continue;
    for (const line of block.text.trimEnd().split('\n')) {
      assert.match(line, /^(;.*|\[\w+\]|[\w.*]+ = \S.*|)$/, `${placeOf(block)}: ${line}`);
    }
  }
});

test('what a page quotes from a file is in that file', () => {
  const unindent = (text: string) => text.replace(/^ +/gm, '');
  for (const page of pages.filter((candidate) => quotedFrom(candidate).length > 0)) {
    const sources = quotedFrom(page).map((file) =>
      readFileSync(file, 'utf8').replace(/\.\.\/\.\.\/src\/(\w+)\/index\.ts/g, 'effectmatch/$1'),
    );
    for (const block of page.blocks.filter(({ language }) => language === 'ts')) {
      const text = unindent(block.text).trimEnd();
      assert.ok(
        sources.some((source) => unindent(source).includes(text)),
        `${placeOf(block)} is quoted from nowhere`,
      );
    }
  }
});

test('the API reference is the one that the sources give, and every export says what it promises', () => {
  const { pages: made, undocumented } = makeReference(installation.home);
  assert.deepEqual(undocumented, [], 'exports without a doc comment');
  const stored = readPages().filter(({ file }) => file.startsWith('docs/api/'));
  assert.deepEqual(
    stored.map(({ file }) => file.slice('docs/api/'.length)).sort(),
    made.map(({ file }) => file).sort(),
    'run `npm run api-reference`',
  );
  for (const { file, text } of made) {
    assert.equal(
      readFileSync(join('docs/api', file), 'utf8'),
      text,
      `docs/api/${file} is stale: npm run api-reference`,
    );
  }
});

test('without the packages for PostgreSQL or MCP the command says which to install, and everything else works', () => {
  const bare = mkdtempSync(join(tmpdir(), 'effectmatch-bare-'));
  try {
    const home = join(bare, 'node_modules/effectmatch');
    cpSync(installation.home, home, { recursive: true });
    const call = (...words: string[]) =>
      spawnSync(process.execPath, [join(home, 'dist/cli/main.js'), ...words], {
        cwd: bare,
        encoding: 'utf8',
      });
    const { status, stderr } = call('init', 'postgres://postgres@127.0.0.1:1/books');
    assert.equal(status, 1);
    assert.match(
      stderr,
      /needs the packages pg and libpg-query\nnext: run `npm install pg libpg-query`.*nothing was written/,
    );
    assert.match(
      call('mcp').stderr,
      /@modelcontextprotocol\/server is not installed; nothing was done\nnext: run `npm install @/,
    );
    assert.equal(call('token', 'new', 'agent', '--digest-only').status, 0);
    assert.equal(call('keygen', 'alice').status, 0);
  } finally {
    rmSync(bare, { recursive: true, force: true });
  }
});
