// Goal: the architecture in docs/architecture.md stays true without anyone having to remember it.
// Method: read every source file as text and check import direction, casts and forbidden words. (That
// no function is longer than 60 lines is a rule of Biome.)
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const sources = globSync('src/**/*.ts').map((file) => ({ file, text: readFileSync(file, 'utf8') }));
const all = [
  ...sources,
  ...globSync('{test,bench,examples}/**/*.ts').map((file) => ({
    file,
    text: readFileSync(file, 'utf8'),
  })),
];

/**
 * What each folder of src may import, besides itself. `cli` and `index.ts` may import everything.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  errors: [],
  'node-version': ['errors'],
  protocol: ['errors'],
  contract: ['errors', 'protocol'],
  crypto: ['errors', 'protocol', 'contract'],
  backend: ['errors', 'protocol', 'contract', 'crypto'],
  sqlite: ['errors', 'protocol', 'contract', 'backend'],
  postgres: ['errors', 'protocol', 'contract'],
  http: ['errors', 'protocol', 'contract', 'crypto', 'backend'],
  upstream: ['errors', 'protocol'],
  ledger: ['errors', 'protocol', 'contract', 'sqlite', 'postgres'],
  adapters: [
    ...['errors', 'protocol', 'contract', 'crypto', 'backend', 'sqlite', 'postgres', 'http'],
    'upstream',
  ],
  runtime: ['errors', 'protocol', 'contract', 'crypto', 'ledger'],
  requests: ['errors', 'protocol', 'contract', 'crypto', 'sqlite', 'postgres', 'runtime'],
  workflow: ['errors', 'protocol', 'contract', 'crypto', 'postgres', 'runtime', 'requests'],
  agents: ['errors', 'protocol', 'contract', 'runtime', 'requests'],
  access: ['errors', 'protocol', 'contract', 'runtime', 'requests', 'upstream'],
  mcp: ['errors', 'protocol', 'contract', 'runtime', 'requests', 'agents', 'access', 'upstream'],
  api: ['errors', 'protocol', 'contract', 'runtime', 'requests', 'access'],
  console: ['errors', 'protocol', 'contract', 'crypto', 'runtime', 'requests', 'workflow'],
  telemetry: ['contract', 'runtime'],
  testing: ['errors', 'protocol', 'contract', 'crypto'],
};

const layerOf = (file: string) => file.split('/')[1]?.replace(/\.ts$/, '') ?? '';
const importsOf = (text: string) =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');

test('imports follow the direction of the layers', () => {
  let checked = 0;
  for (const { file, text } of sources) {
    const layer = layerOf(file);
    const allowed = MAY_IMPORT[layer];
    if (allowed === undefined) {
      assert.ok(['cli', 'index'].includes(layer), `${file}: folder "${layer}" has no import rule`);
      continue;
    }
    for (const specifier of importsOf(text).filter((name) => name.startsWith('.'))) {
      const target = layerOf(normalize(join(dirname(file), specifier)));
      assert.ok(
        target === layer ||
          target === 'node-version' ||
          allowed.includes(target) ||
          // Types: the configuration of a deployment names all of these.
          /^\.\.\/(?:requests|access|workflow|console)\/configuration\.ts$/.test(specifier),
        `${file} must not import ${specifier}`,
      );
      checked += 1;
    }
  }
  assert.ok(checked > 50, `only ${checked} imports seen`);
});

test('docs/architecture.md describes every folder of src', () => {
  const page = readFileSync('docs/architecture.md', 'utf8');
  for (const folder of new Set(sources.map(({ file }) => file.split('/')[1] ?? ''))) {
    const name = folder.endsWith('.ts') ? folder : `${folder}/`;
    assert.ok(
      folder === 'index.ts' || page.includes(`\n| \`${name}`),
      `the table of folders lacks ${name}`,
    );
  }
});

test('adapters do not import a sibling adapter', () => {
  for (const { file, text } of sources.filter(({ file }) => file.startsWith('src/adapters/'))) {
    const own = file.split('/').slice(0, 3).join('/');
    for (const specifier of importsOf(text).filter((name) => name.startsWith('.'))) {
      const target = normalize(join(dirname(file), specifier));
      assert.ok(
        !target.startsWith('src/adapters/') || target.startsWith(`${own}/`),
        `${file} imports ${specifier}`,
      );
    }
  }
});

test('the protocol has no clock, randomness, I/O or await', () => {
  const files = sources.filter(({ file }) => file.startsWith('src/protocol/'));
  assert.ok(files.length > 15);
  for (const { file, text } of files) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    for (const banned of [
      /\bawait\b/,
      /\basync\b/,
      /\bDate\.now\b/,
      /\bnew Date\b/,
      /Math\.random/,
      /'node:/,
      /\bfetch\(/,
    ]) {
      assert.doesNotMatch(code, banned, `${file} uses ${banned}`);
    }
  }
});

test('proofs are minted only where their step is decided', () => {
  const minting: Record<string, readonly string[]> = {
    // A rehearsal's claim is in no ledger and its seal opens with no key; its stage never leaves
    // the function.
    Claim: ['src/runtime/authority.ts', 'src/runtime/admit.ts', 'src/runtime/rehearse.ts'],
    Certificate: ['src/runtime/boundary.ts', 'src/runtime/admit.ts'],
    ConsumedPermit: ['src/runtime/gate.ts', 'src/runtime/admit.ts'],
    RequestPermit: ['src/runtime/gate.ts'],
    SignedAttempt: ['src/runtime/authority.ts'],
  };
  for (const [proof, places] of Object.entries(minting)) {
    const pattern = new RegExp(`\\bas (?:unknown as )?${proof}\\b`);
    const found = sources.filter(({ text }) => pattern.test(text)).map(({ file }) => file);
    const outside = found.filter(
      (file) => !places.includes(file) && !file.startsWith('src/testing/'),
    );
    assert.deepEqual(outside, [], `${proof} is minted outside its place`);
    assert.ok(found.length > 0, `no mint of ${proof} seen`);
  }
});

test('a rehearsal has no way to promote, to permit or to record anything', () => {
  const text = sources.find(({ file }) => file === 'src/runtime/rehearse.ts')?.text ?? '';
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  assert.match(code, /\.stage\(/, 'the stage is opened here');
  assert.match(code, /finally \{\s*await staged\.stage\.discard\(\);\s*\}/);
  for (const banned of [
    /promote/i,
    /permit/i,
    /ledgers/,
    /\bseal\(/,
    /markers/,
    /return [^;]*\bstage\b[^.]/,
  ]) {
    assert.doesNotMatch(code, banned, `src/runtime/rehearse.ts uses ${banned}`);
  }
});

test('a shadow has no way to claim, to permit, to promote or to record a verdict', () => {
  const text = sources.find(({ file }) => file === 'src/runtime/shadow.ts')?.text ?? '';
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  assert.ok(code.length > 1000, 'it was read');
  for (const banned of [
    /promote\(/,
    /permit/i,
    /\bmarkers\b/,
    /\.stage\(/,
    /terminalRecord/,
    /announcePlan/,
  ]) {
    assert.doesNotMatch(code, banned, `src/runtime/shadow.ts uses ${banned}`);
  }
  const asked = [...code.matchAll(/ledgers\.(\w+)/g)].map(([, method]) => method);
  assert.deepEqual([...new Set(asked)].sort(), ['holder', 'recordShadow', 'standing']);
});

test('nothing that settles, recovers or releases knows of shadows', () => {
  for (const name of [
    'settle',
    'recover',
    'continuation',
    'resolve',
    'finish',
    'gate',
    'promotable',
    'remote',
  ]) {
    const text = sources.find(({ file }) => file === `src/runtime/${name}.ts`)?.text ?? '';
    assert.ok(text.length > 500, `${name} was read`);
    assert.doesNotMatch(text, /shadow/i, `src/runtime/${name}.ts knows of shadows`);
  }
});

test('names say something, and no marker or narrowed test is left behind', () => {
  assert.ok(sources.length > 40);
  for (const { file } of sources) {
    assert.doesNotMatch(
      file,
      /util|helper|manager|-service/i,
      `${file} has a name that says nothing`,
    );
  }
  const marker = new RegExp(`\\b(${['TO', 'DO'].join('')}|FIX${'ME'}|HA${'CK'})\\b`);
  for (const { file, text } of all) {
    assert.doesNotMatch(text, marker, `${file} has a marker`);
    if (file !== 'test/tidy.test.ts')
      assert.doesNotMatch(text, /\b(test|it|describe)\.only\b/, `${file} narrows the tests`);
  }
});

test('every error code is documented with cause and remedy, and every documented code exists', async () => {
  const { ERROR_CODES } = await import('../src/errors.ts');
  const documented = [
    ...readFileSync('docs/errors.md', 'utf8').matchAll(/^## (ERR_EM_[A-Z_]+)$/gm),
  ].map((match) => match[1]);
  assert.deepEqual([...documented].sort(), [...ERROR_CODES].sort());
  for (const code of ERROR_CODES) {
    const used = sources.filter(
      ({ file, text }) => file !== 'src/errors.ts' && text.includes(`'${code}'`),
    );
    assert.ok(used.length > 0, `${code} is listed but never thrown`);
  }
});
