// Goal: a disk that is really full, at whichever step, never leaves half a change, a wrong verdict
// or a lasting leftover. Method: a file system of two megabytes in a mount namespace of its own,
// which needs no root where namespaces are free.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-no-space-'));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly step: string;
  readonly spare: number;
  readonly fired: boolean;
  readonly ended: string;
  readonly settled: string;
  readonly shows: string;
  readonly versions: number;
}

test('a disk that is full at any step leaves the old folder or the whole new one, with the verdict that says so', (context) => {
  const disk = join(folder, 'disk');
  const ledgers = join(folder, 'ledgers');
  for (const path of [disk, ledgers]) mkdirSync(path);
  const script = fileURLToPath(new URL('no-space.ts', import.meta.url));
  const mount = 'mount -t tmpfs -o size=2m none "$1" || exit 77; TMPDIR=$1 exec "$2" "$3" "$4"';
  const namespace = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--map-root-user'];
  const shell = ['sh', '-c', mount, 'sh', disk, process.execPath, script, ledgers];
  const child = spawnSync('unshare', [...namespace, ...shell], { encoding: 'utf8' });
  if (child.error !== undefined || child.status === 77 || child.stderr.startsWith('unshare:')) {
    const why = (child.error?.message ?? child.stderr).trim();
    return context.skip(
      `no file system of its own here (${why}); the size limit in promotion.test.ts stands in for it`,
    );
  }
  assert.equal(child.status, 0, child.stderr);
  const attempts = child.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Ended);
  assert.equal(attempts.length, 28);
  for (const attempt of attempts) {
    const { ended, settled, shows, versions } = attempt;
    const verdict = settled === '' ? ended : settled;
    const where = JSON.stringify(attempt);
    assert.ok(attempt.fired, where);
    assert.match(verdict, /^(committed|rejected)$/, where);
    assert.equal(shows, verdict === 'committed' ? 'new' : 'old', where);
    assert.equal(versions, verdict === 'committed' ? 2 : 1, where);
  }
  const verdicts = new Set(attempts.map(({ ended }) => ended));
  assert.ok(verdicts.has('rejected') && verdicts.has('committed'), [...verdicts].join());
  context.diagnostic(
    [...verdicts]
      .map((kind) => `${kind} ${attempts.filter(({ ended }) => ended === kind).length}`)
      .join(),
  );
});
