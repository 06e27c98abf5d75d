// Child of no-space.test.ts, started with a small file system of its own: fills it at one step
// after another, frees it again, recovers, and prints how every attempt ended and what the folder
// then held.
import { readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { files } from '../../../src/adapters/files/index.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { insert, update } from '../../../src/protocol/draft.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { listFolder } from '../files-kit.ts';
import { Site, write } from './site.ts';

const [ledgers = ''] = process.argv.slice(2);
const STEPS: readonly Step[] = [
  'path:claimed',
  'adapter:stage-opened',
  'adapter:action-done',
  'path:observed',
  'path:gate-passed',
  'adapter:marker-written',
  'adapter:commit-returned',
];
const PAGE = 'p'.repeat(40_000);
const key = generateApprover('editor');

for (const step of STEPS) for (const spare of [0, 4096, 20_480, 65_536]) await fillAt(step, spare);

async function fillAt(step: Step, spare: number): Promise<void> {
  await using site = new Site({ index: 'old', 'docs/x': 'x' });
  const ballast = join(site.home, 'ballast');
  let armed = false;
  const deploy = () =>
    createRuntime(
      {
        store: join(ledgers, `${step}-${spare}.db`),
        keyring: join(ledgers, 'keys.json'),
        issuers: { editor: { key: key.publicKey, may: ['site'] } },
        adapters: { site: files({ root: site.root, adopt: true }) },
      },
      {
        reached: (reached) => {
          if (!armed || reached !== step) return;
          armed = false;
          fill(ballast, spare);
        },
      },
    );
  const before = listFolder(site.root);
  const after = { ...before };
  let ended = '';
  let occurrence: OccurrenceId | undefined;
  {
    await using runtime = await deploy();
    const effects = [
      update('file', { path: 'index' }, { content: ['old', PAGE] }),
      insert('file', { path: 'docs/new', content: PAGE }),
    ];
    const draft = { adapter: 'site', task: 'task', planRevision: 1, effects };
    const license = approver(key).sign(await runtime.prepare(draft), { expiresIn: '10m' });
    armed = true;
    const operations = [write('index', PAGE), write('docs/new', PAGE)];
    const attempt = runtime.execute(license, { operations });
    const terminal = await attempt.catch(() => undefined);
    ended = terminal?.kind ?? 'fault';
    occurrence = terminal?.occurrence;
  }
  rmSync(ballast, { force: true });
  await using runtime = await deploy();
  const recovered = await runtime.recover({ now: true });
  const content = Buffer.from(PAGE).toString('base64');
  Object.assign(after, { index: `644 ${content}`, 'docs/new': `644 ${content}` });
  const now = JSON.stringify(sorted(listFolder(site.root)));
  const shows =
    now === JSON.stringify(sorted(before))
      ? 'old'
      : now === JSON.stringify(sorted(after))
        ? 'new'
        : 'mixed';
  // Opening may have settled it already.
  const stands = occurrence && (await runtime.terminal(occurrence))?.kind;
  const settled =
    stands ??
    recovered.map((one) => (one.kind === 'settled' ? one.terminal.kind : one.kind)).join();
  const versions = readdirSync(site.versions).length;
  process.stdout.write(
    `${JSON.stringify({ step, spare, fired: !armed, ended, settled, shows, versions })}\n`,
  );
}

function sorted(listed: Readonly<Record<string, string>>): unknown {
  return Object.entries(listed).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Leaves this many bytes free. */
function fill(file: string, spare: number): void {
  let size = 0;
  const piece = Buffer.alloc(4096, 1);
  try {
    for (;;) {
      writeFileSync(file, piece, { flag: 'a' });
      size += piece.length;
    }
  } catch {
    truncateSync(file, Math.max(0, size - spare));
  }
}
