// Goal: one license buys one effect, however many processes, machines or restored ledgers present
// it. Method: real processes with open runtimes fire at one license at the same moment; files are
// compared without the product.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { OperationKind } from './backends/backend.ts';
import { BACKENDS, MARIADB } from './backends/index.ts';
import type { Operation, Site } from './commands.ts';
import { readFacts } from './facts.ts';
import { createTemplate, type Installation, taskOf } from './installation.ts';
import { type Child, Pool } from './pool.ts';
import { Scene } from './scene.ts';
import { findViolations } from './violations.ts';

const CONTENDERS = 8;
/** On all backends together; more by hand: EFFECTMATCH_ROUNDS=200 node --test <this file> */
const ROUNDS = Number(process.env.EFFECTMATCH_ROUNDS ?? 60);
/** So many of them are released afterwards, on each backend. */
const RELEASED = 5;
const CONTENDED = [...BACKENDS, ...MARIADB];
let pool: Pool;

before(() => {
  pool = new Pool(CONTENDERS + 2);
});
after(() => pool.close());

/**
 * A separate installation with this many operations. `append` matches however often it runs: only the
 * marker is in the way.
 */
async function withInstallation(
  backend: (typeof CONTENDED)[number],
  count: number,
  use: (scene: Scene, installation: Installation) => Promise<void>,
): Promise<void> {
  await using template = await createTemplate(
    backend,
    Array.from({ length: count }, (): OperationKind => 'append'),
  );
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  await use(scene, installation);
}

/** All processes have the operation before any of them starts. */
async function fireTogether(
  children: readonly Child[],
  operation: Operation,
): Promise<readonly Terminal[]> {
  await Promise.all(children.map((child) => child.ask('load', { operation })));
  return Promise.all(children.map((child) => child.ask('fire', {})));
}

const kindsOf = (terminals: readonly Terminal[]) =>
  terminals.map((terminal) => terminal.kind).sort();

for (const backend of CONTENDED) {
  const rounds = Math.ceil(ROUNDS / CONTENDED.length);
  test(`${CONTENDERS} processes race one license ${rounds} times on ${backend.name}: one effect, seven refusals, each time`, async () => {
    await withInstallation(backend, rounds, async (scene, installation) => {
      const children = await Promise.all(Array.from({ length: CONTENDERS }, () => scene.fresh()));
      for (const operation of installation.operations) {
        const terminals = await fireTogether(children, operation);
        assert.deepEqual(kindsOf(terminals), [
          'committed',
          ...Array(CONTENDERS - 1).fill('rejected'),
        ]);
        for (const terminal of terminals) {
          if (terminal.kind === 'rejected') assert.equal(terminal.reason, 'spent', terminal.detail);
        }
        const child = children[operation.n % CONTENDERS];
        const seen = await child?.ask('terminal', { operation });
        assert.equal(
          seen?.kind,
          'committed',
          'a refused replay never shadows the attempt that holds the claim',
        );
      }
      const { releases } = installation;
      for (const operation of installation.operations.slice(0, RELEASED)) {
        const asked = await Promise.all(
          children.map((child) => child.ask('release', { operation, releases })),
        );
        assert.equal(asked.filter((result) => result.kind === 'released').length, 1);
      }
      const facts = await readFacts(installation);
      const released = installation.operations.slice(0, RELEASED).map((operation) => operation.n);
      assert.deepEqual(findViolations(installation, facts, { stage: 'settled', released }), []);
      for (const operation of installation.operations) {
        const ends = (facts.journals[0] ?? []).filter(
          (line) => line.kind === 'terminal' && line.record.task === taskOf(operation),
        );
        const spent = ends.filter(
          (line) => line.record.reason === 'spent' && line.record.claim === undefined,
        );
        assert.equal(ends.filter((line) => line.record.kind === 'committed').length, 1);
        assert.equal(spent.length, CONTENDERS - 1);
        assert.equal(ends.length, CONTENDERS);
      }
    });
  });
}

/** Two machines that share a backend and nothing else of the store. */
const MACHINES = [
  { keyring: 'the same keyring', ownKeyring: false },
  { keyring: 'keyrings of their own', ownKeyring: true },
] as const;

for (const { keyring, ownKeyring } of MACHINES) {
  test(`one license on two machines with separate ledgers and ${keyring} has one effect, each time`, async () => {
    for (const backend of CONTENDED) {
      await withInstallation(backend, 4, async (scene, installation) => {
        const site = installation.secondSite('second', { ownKeyring });
        const [here, there] = await Promise.all([scene.fresh(), scene.fresh({ site })]);
        for (const operation of installation.operations) {
          const together = operation.n % 2 === 0;
          const pair = operation.n % 4 < 2 ? [here, there] : [there, here];
          const terminals = together
            ? await fireTogether(pair, operation)
            : await fireInTurn(pair, operation);
          assert.deepEqual(
            kindsOf(terminals),
            ['committed', 'rejected'],
            JSON.stringify(terminals),
          );
          if (!together) assert.equal(terminals[0]?.kind, 'committed');
        }
        await expectSound(installation, [here, there], [installation.site, site]);
      });
    }
  });
}

async function fireInTurn(
  children: readonly Child[],
  operation: Operation,
): Promise<readonly Terminal[]> {
  const terminals: Terminal[] = [];
  for (const child of children) terminals.push(await child.ask('execute', { operation }));
  return terminals;
}

/**
 * Nothing is left to recover, the loser is never released, and both journals together explain the
 * durable state.
 */
async function expectSound(
  installation: Installation,
  children: readonly Child[],
  sites: readonly Site[],
): Promise<void> {
  const { releases } = installation;
  for (const child of children) assert.deepEqual(await child.ask('recover', {}), []);
  for (const operation of installation.operations) {
    const asked = await Promise.all(
      children.map((child) => child.ask('release', { operation, releases })),
    );
    assert.equal(asked.filter((result) => result.kind === 'released').length, 1);
  }
  for (const child of children) assert.equal((await child.ask('verify', {})).kind, 'intact');
  const facts = await readFacts(
    installation,
    sites.map((site) => site.ledger),
  );
  const released = installation.operations.map((operation) => operation.n);
  assert.deepEqual(findViolations(installation, facts, { stage: 'settled', released }), []);
}

test('a machine that died with its claim is recovered as rejected when another machine has committed', async () => {
  for (const backend of CONTENDED) {
    await withInstallation(backend, 2, async (scene, installation) => {
      const [operation, voided] = installation.operations;
      assert.ok(operation && voided);
      const site = installation.secondSite('second', { ownKeyring: false });
      const there = await scene.fresh({ site });
      await scene.dieAt('path:gate-passed', 'execute', { operation });
      assert.equal((await there.ask('execute', { operation })).kind, 'committed');
      const here = await scene.fresh();
      const [recovered] = await here.ask('recover', {});
      assert.ok(
        recovered?.kind === 'settled' && recovered.terminal.kind === 'rejected',
        JSON.stringify(recovered),
      );
      assert.equal(recovered.terminal.reason, 'decided-elsewhere');

      await scene.dieAt('path:claimed', 'execute', { operation: voided });
      await here.ask('recover', {});
      assert.equal(
        (await there.ask('execute', { operation: voided })).kind,
        'rejected',
        'the void marker holds everywhere',
      );
      const facts = await readFacts(installation, [installation.site.ledger, site.ledger]);
      assert.deepEqual(findViolations(installation, facts, { stage: 'settled' }), []);
    });
  }
});

test('a ledger restored from before the claim cannot buy a second effect', async () => {
  const deaths = [
    undefined,
    'adapter:commit-returned',
    'path:promoted',
    'path:terminal-recorded',
  ] as const;
  for (const backend of CONTENDED) {
    await withInstallation(backend, deaths.length, async (scene, installation) => {
      const { operations, releases } = installation;
      const backup = installation.saveLedger('backup');
      for (const [index, operation] of operations.entries()) {
        const died = deaths[index];
        if (died === undefined) await scene.execute(operation);
        else await scene.dieAt(died, 'execute', { operation });
      }
      await scene.recoverTogether(2);
      const original = installation.saveLedger('original');
      copyFileSync(backup, installation.site.ledger);

      const restored = await scene.fresh();
      assert.deepEqual(await restored.ask('recover', {}), []);
      for (const operation of operations) {
        const again = await restored.ask('execute', { operation });
        assert.equal(again.kind, 'rejected', JSON.stringify(again));
        const released = await restored.ask('release', { operation, releases });
        assert.equal(released.kind, 'halted');
      }
      await scene.done(restored);
      const facts = await readFacts(installation, [original, installation.site.ledger]);
      assert.deepEqual(
        [...scene.violations, ...findViolations(installation, facts, { stage: 'settled' })],
        [],
      );
    });
  }
});
