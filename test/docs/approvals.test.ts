// Goal: the program that docs/approvals.md shows runs and prints what the page says.
// Method: its code blocks, joined, in a process of their own; only the names of the package's entry points are resolved.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

test('the examples of docs/approvals.md run as one program', () => {
  const page = readFileSync('docs/approvals.md', 'utf8');
  const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  assert.ok(blocks.length >= 4);
  const entries = {
    effectmatch: new URL('../../src/index.ts', import.meta.url).href,
    'effectmatch/adapters/sqlite': new URL('../../src/adapters/sqlite/index.ts', import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  const program = blocks.join('\n').replace(/from '([^']+)';/g, (whole, name: string) => {
    const entry = Object.hasOwn(entries, name) ? entries[name as keyof typeof entries] : undefined;
    return entry === undefined ? whole : `from '${entry}';`;
  });
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-docs-'));
  try {
    writeFileSync(join(folder, 'program.ts'), program);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const run = spawnSync(process.execPath, ['program.ts'], { cwd: folder, encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    const said = [...page.matchAll(/^\/\/ (.+)$/gm)].map(([, line = '']) => line);
    assert.equal(said.length, 3);
    for (const line of said) assert.ok(run.stdout.includes(line), `${line}\nis not in\n${run.stdout}`);
    assert.equal(run.stdout.match(/^committed$/gm)?.length, 2, run.stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
