// Goal: what must be flushed before it counts is flushed once, and what may be relaxed is not
// flushed at all. Method: a child process runs under strace and names each operation on stderr;
// flushes between the names are counted.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './sqlite-store.ts';

const tracing = spawnSync('strace', ['-f', '-o', '/dev/null', 'true']).status === 0;
const skip = tracing ? false : 'strace is not installed here, or tracing is not permitted';

test('every operation flushes exactly as often as it promises', { skip }, async () => {
  await using folder = await temporaryFolder();
  const trace = join(folder.path, 'trace');
  const script = fileURLToPath(new URL('flush-worker.ts', import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawnSync(
    'strace',
    [
      '-f',
      '-s',
      '64',
      '-e',
      'trace=fsync,fdatasync,write',
      '-o',
      trace,
      process.execPath,
      script,
      folder.path,
    ],
    { env, encoding: 'utf8' },
  );
  assert.equal(child.status, 0, child.stderr);

  const flushes = new Map<string, number>();
  let operation: string | undefined;
  for (const line of (await readFile(trace, 'utf8')).split('\n')) {
    const named = /write\(2, "operation: ([^"\\]*)/.exec(line);
    if (named !== null) {
      operation = named[1] ?? '';
      flushes.set(operation, 0);
    } else if (operation !== undefined && / f(?:data)?sync\(/.test(line)) {
      flushes.set(operation, (flushes.get(operation) ?? 0) + 1);
    }
  }
  flushes.delete('open');
  flushes.delete('close');
  assert.deepEqual(Object.fromEntries(flushes), {
    claim: 1,
    'claim refused': 0,
    'renew lease': 0,
    'consume permit': 1,
    'void permit': 1,
    'relaxed terminal': 0,
    'agreement, relaxed': 0,
    'agreement, flushed': 1,
    'flushed terminal': 1,
    acknowledgement: 1,
    'acknowledgement refused': 0,
    'plan revision': 1,
    checkpoint: 1,
    'document, first time': 1,
    'document, again': 0,
    reading: 0,
  });
});
