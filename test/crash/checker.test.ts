// Goal: the checker of the crash tests complains when a world is wrong; one that never complains
// would prove nothing. Method: build a sound world with real processes, falsify one thing in its
// files by hand, and expect the complaint.
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { STEPS } from '../../src/contract/steps.ts';
import { OPERATION_KINDS } from './backends/backend.ts';
import { BACKENDS } from './backends/index.ts';
import { chanceOf } from './chance.ts';
import { readFacts } from './facts.ts';
import { Pool } from './pool.ts';
import { Scene } from './scene.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS, REMOTE_STEPS } from './steps.ts';
import { findViolations } from './violations.ts';
import { createTemplate, type Template, type World } from './world.ts';

let pool: Pool;
const templates: Template[] = [];

before(async () => {
  pool = new Pool(4);
  for (const backend of BACKENDS) templates.push(await createTemplate(backend, OPERATION_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

/** A world in which every operation has run and every committed one was released. */
async function withSoundWorld(
  template: Template,
  use: (world: World, verify: () => Promise<string>) => Promise<void>,
) {
  await using world = await template.copy();
  await using scene = new Scene(pool, world);
  for (const operation of world.operations) await scene.execute(operation);
  await scene.releaseTwice(...world.operations);
  assert.deepEqual([...scene.violations, ...(await complaints(world))], []);
  await use(world, async () => {
    const child = await scene.fresh();
    const answer = await child.call('verify', {});
    await scene.done(child);
    return answer.kind === 'done' ? answer.value.kind : 'failed';
  });
}

async function complaints(world: World): Promise<readonly string[]> {
  const released = world.operations.map((operation) => operation.n);
  return findViolations(world, await readFacts(world), { stage: 'settled', released });
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

const terminalOf = (world: World, kind: 'append' | 'surprise') =>
  `kind = 'terminal' and slot like 'terminal:%' and text like '%"task":"op-${world.operationOf(kind).n}"%'`;

test('a changed, lost or added business row is noticed, for every kind of operation on every backend', async () => {
  for (const template of templates) {
    for (const kind of OPERATION_KINDS) {
      await withSoundWorld(template, async (world) => {
        await world.backend.falsify(world.folder, world.operationOf(kind));
        assert.match((await complaints(world)).join('\n'), /durable state: /);
      });
    }
  }
});

/** One falsification of the ledger or of a log, and the complaint that must follow. */
const FALSIFICATIONS: readonly {
  readonly name: string;
  readonly falsify: (world: World) => void | Promise<void>;
  readonly complaint: RegExp;
  readonly journal: 'intact' | 'tampered';
}[] = [
  {
    name: 'a committed verdict turned into a rejected one',
    falsify: (world) =>
      alter(
        world.site.ledger,
        `update journal set text = replace(text, '"kind":"committed"', '"kind":"rejected"') where ${terminalOf(world, 'append')} and text like '%"kind":"committed"%'`,
      ),
    complaint: /its marker says committed, but no journal does/,
    journal: 'tampered',
  },
  {
    name: 'a rejected verdict turned into a committed one',
    falsify: (world) =>
      alter(
        world.site.ledger,
        `update journal set text = replace(text, '"kind":"rejected"', '"kind":"committed"') where ${terminalOf(world, 'surprise')} and text not like '%"reason":"spent"%'`,
      ),
    complaint: /committed, although its outcome is not the approved one/,
    journal: 'tampered',
  },
  {
    name: 'a lost verdict',
    falsify: (world) =>
      alter(world.site.ledger, `delete from journal where ${terminalOf(world, 'surprise')}`),
    complaint: /claimed, but without a verdict/,
    journal: 'tampered',
  },
  {
    name: 'a second verdict for the same attempt',
    falsify: (world) =>
      alter(
        world.site.ledger,
        `insert into journal (kind, occurrence, slot, text, seal_key, seal_mac, digest) select kind, occurrence, 'settlement:x', text, seal_key, seal_mac, digest from journal where ${terminalOf(world, 'append')} and text like '%"kind":"committed"%'`,
      ),
    complaint: /2 verdicts for one attempt/,
    journal: 'tampered',
  },
  {
    name: 'a replay that says committed without the claim',
    falsify: (world) =>
      alter(
        world.site.ledger,
        `update journal set text = replace(text, '"kind":"rejected"', '"kind":"committed"') where ${terminalOf(world, 'append')} and text like '%"reason":"spent"%'`,
      ),
    complaint: /committed without holding the claim/,
    journal: 'tampered',
  },
  {
    name: 'a lost marker',
    falsify: (world) =>
      world.backend.loseMarker(world.folder, world.operationOf('append').occurrence),
    complaint: /committed, but the marker does not say so/,
    journal: 'intact',
  },
  {
    name: 'work that ran twice',
    falsify: (world) => appendFileSync(world.releases, `${world.operationOf('append').n}\n`),
    complaint: /its dependent work ran 2 times/,
    journal: 'intact',
  },
  {
    name: 'work that ran for a rejected operation',
    falsify: (world) => appendFileSync(world.releases, `${world.operationOf('failing').n}\n`),
    complaint: /its dependent work ran without a committed verdict/,
    journal: 'intact',
  },
];

for (const { name, falsify, complaint, journal } of FALSIFICATIONS) {
  test(`${name} is noticed`, async () => {
    const template = templates[0];
    assert.ok(template);
    await withSoundWorld(template, async (world, verify) => {
      await falsify(world);
      assert.match((await complaints(world)).join('\n'), complaint);
      assert.equal(await verify(), journal);
    });
  });
}

test('a missing release is noticed', async () => {
  const template = templates[0];
  assert.ok(template);
  await using world = await template.copy();
  await using scene = new Scene(pool, world);
  await scene.execute(world.operationOf('append'));
  assert.match((await complaints(world)).join('\n'), /committed, but nobody was released/);
});

test('the step lists divide all steps among them, and choices repeat with their seed', () => {
  const lists = [...EXECUTION_STEPS, ...RECOVERY_STEPS, ...RELEASE_STEPS, ...REMOTE_STEPS];
  assert.deepEqual(lists.toSorted(), STEPS.toSorted());
  const draw = (label: string) => {
    const chance = chanceOf(label);
    return Array.from({ length: 8 }, () => chance.below(1000));
  };
  assert.deepEqual(draw('a/1'), draw('a/1'));
  assert.notDeepEqual(draw('a/1'), draw('a/2'));
});
