// Goal: the checker of the crash tests complains when an installation is wrong; one that never complains
// would prove nothing. Method: build a sound installation with real processes, falsify one thing in its
// files by hand, and expect the complaint.
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { STEPS } from '../../src/contract/steps.ts';
import { randomOf } from '../random.ts';
import { OPERATION_KINDS } from './backends/backend.ts';
import { BACKENDS } from './backends/index.ts';
import { readFacts } from './facts.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { Pool } from './pool.ts';
import { Scene } from './scene.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS, REMOTE_STEPS } from './steps.ts';
import { findViolations } from './violations.ts';

let pool: Pool;
const templates: Template[] = [];

before(async () => {
  pool = new Pool(4);
  for (const backend of BACKENDS) templates.push(await createTemplate(backend, OPERATION_KINDS));
});

after(async () => {
  await pool.close();
  for (const installation of sound.values()) await installation[Symbol.asyncDispose]();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

/** An installation in which every operation has run and every committed one was released. */
async function withSoundInstallation(
  template: Template,
  use: (installation: Installation, verify: () => Promise<string>) => Promise<void>,
) {
  const original = sound.get(template) ?? (await makeSound(template));
  const isInFolder = template.backend.outside === undefined;
  if (isInFolder) sound.set(template, original);
  await using installation = isInFolder ? original.copy() : original;
  await using scene = new Scene(pool, installation);
  assert.deepEqual(await complaints(installation), []);
  await use(installation, async () => {
    const child = await scene.fresh();
    const answer = await child.call('verify', {});
    await scene.done(child);
    return answer.kind === 'done' ? answer.value.kind : 'failed';
  });
}

/** The first one of each template, to be copied. */
const sound = new Map<Template, Installation>();

async function makeSound(template: Template): Promise<Installation> {
  const installation = await template.copy();
  await using scene = new Scene(pool, installation);
  // The first time executes them, and the second is refused because they are spent.
  await scene.releaseTwice(...installation.operations);
  await scene.releaseTwice(...installation.operations);
  assert.deepEqual([...scene.violations, ...(await complaints(installation))], []);
  return installation;
}

async function complaints(installation: Installation): Promise<readonly string[]> {
  const released = installation.operations.map((operation) => operation.n);
  return findViolations(installation, await readFacts(installation), {
    stage: 'settled',
    released,
  });
}

function alter(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  try {
    db.exec('pragma foreign_keys = off');
    const before = db.prepare('select total_changes() as n').get()?.n;
    db.exec(sql);
    assert.notEqual(
      db.prepare('select total_changes() as n').get()?.n,
      before,
      `nothing was changed by: ${sql}`,
    );
  } finally {
    db.close();
  }
}

const terminalOf = (installation: Installation, kind: 'append' | 'surprise') =>
  `kind = 'terminal' and slot like 'terminal:%' and text like '%"task":"op-${installation.operationOf(kind).n}"%'`;

test('a changed, lost or added business row is noticed, for every kind of operation on every backend', async () => {
  for (const template of templates) {
    for (const kind of OPERATION_KINDS) {
      await withSoundInstallation(template, async (installation) => {
        await installation.backend.falsify(installation.folder, installation.operationOf(kind));
        assert.match((await complaints(installation)).join('\n'), /durable state: /);
      });
    }
  }
});

/** One falsification of the ledger or of a log, and the complaint that must follow. */
const FALSIFICATIONS: readonly {
  readonly name: string;
  readonly falsify: (installation: Installation) => void | Promise<void>;
  readonly complaint: RegExp;
  readonly journal: 'intact' | 'tampered';
}[] = [
  {
    name: 'a committed verdict turned into a rejected one',
    falsify: (installation) =>
      alter(
        installation.site.ledger,
        `update journal set text = replace(text, '"kind":"committed"', '"kind":"rejected"') where ${terminalOf(installation, 'append')} and text like '%"kind":"committed"%'`,
      ),
    complaint: /its marker says committed, but no journal does/,
    journal: 'tampered',
  },
  {
    name: 'a rejected verdict turned into a committed one',
    falsify: (installation) =>
      alter(
        installation.site.ledger,
        `update journal set text = replace(text, '"kind":"rejected"', '"kind":"committed"') where ${terminalOf(installation, 'surprise')} and text not like '%"reason":"spent"%'`,
      ),
    complaint: /committed, although its outcome is not the approved one/,
    journal: 'tampered',
  },
  {
    name: 'a lost verdict',
    falsify: (installation) =>
      alter(
        installation.site.ledger,
        `delete from journal where ${terminalOf(installation, 'surprise')}`,
      ),
    complaint: /claimed, but without a verdict/,
    journal: 'tampered',
  },
  {
    name: 'a second verdict for the same attempt',
    falsify: (installation) =>
      alter(
        installation.site.ledger,
        `insert into journal (kind, occurrence, slot, text, seal_key, seal_mac, digest) select kind, occurrence, 'settlement:x', text, seal_key, seal_mac, digest from journal where ${terminalOf(installation, 'append')} and text like '%"kind":"committed"%'`,
      ),
    complaint: /2 verdicts for one attempt/,
    journal: 'tampered',
  },
  {
    name: 'a replay that says committed without the claim',
    falsify: (installation) =>
      alter(
        installation.site.ledger,
        `update journal set text = replace(text, '"kind":"rejected"', '"kind":"committed"') where ${terminalOf(installation, 'append')} and text like '%"reason":"spent"%'`,
      ),
    complaint: /committed without holding the claim/,
    journal: 'tampered',
  },
  {
    name: 'a lost marker',
    falsify: (installation) =>
      installation.backend.loseMarker(
        installation.folder,
        installation.operationOf('append').occurrence,
      ),
    complaint: /committed, but the marker does not say so/,
    journal: 'intact',
  },
  {
    name: 'work that ran twice',
    falsify: (installation) =>
      appendFileSync(installation.releases, `${installation.operationOf('append').n}\n`),
    complaint: /its dependent work ran 2 times/,
    journal: 'intact',
  },
  {
    name: 'work that ran for a rejected operation',
    falsify: (installation) =>
      appendFileSync(installation.releases, `${installation.operationOf('failing').n}\n`),
    complaint: /its dependent work ran without a committed verdict/,
    journal: 'intact',
  },
];

for (const { name, falsify, complaint, journal } of FALSIFICATIONS) {
  test(`${name} is noticed`, async () => {
    const template = templates[0];
    assert.ok(template);
    await withSoundInstallation(template, async (installation, verify) => {
      await falsify(installation);
      assert.match((await complaints(installation)).join('\n'), complaint);
      assert.equal(await verify(), journal);
    });
  });
}

test('a missing release is noticed', async () => {
  const template = templates[0];
  assert.ok(template);
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  await scene.execute(installation.operationOf('append'));
  assert.match((await complaints(installation)).join('\n'), /committed, but nobody was released/);
});

test('the step lists divide all steps among them, and choices repeat with their seed', () => {
  const lists = [...EXECUTION_STEPS, ...RECOVERY_STEPS, ...RELEASE_STEPS, ...REMOTE_STEPS];
  assert.deepEqual(lists.toSorted(), STEPS.toSorted());
  const draw = (label: string) => {
    const chance = randomOf(label);
    return Array.from({ length: 8 }, () => chance.below(1000));
  };
  assert.deepEqual(draw('a/1'), draw('a/1'));
  assert.notDeepEqual(draw('a/1'), draw('a/2'));
});
