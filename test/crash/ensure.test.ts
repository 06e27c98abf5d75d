// Goal: after a process died anywhere in an execution, whoever asks with `ensure` gets one verdict,
// and there is one effect. Method: a process is killed at every step of an execution; then three
// processes call `ensure` at the same moment; files are compared without the product.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Step } from '../../src/contract/steps.ts';
import type { Ensured } from '../../src/runtime/ensure.ts';
import { BACKENDS_AND_LEDGERS, MARIADB } from './backends/index.ts';
import { createTemplate, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import { Scene } from './scene.ts';

const LANES = 3;
const CALLERS = 3;
/** Short, because `ensure` waits until the lease of a dead process has run out. */
const LEASE_MS = 300;
/** Backends on which the appended row has a generated identifier. */
const LABELLED: ReadonlySet<string> = new Set([
  'sqlite-wal',
  'sqlite-delete',
  'postgres',
  'snapshot',
  'mysql',
]);
const templates: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(LANES * CALLERS + 2);
  for (const backend of [...BACKENDS_AND_LEDGERS, ...MARIADB])
    templates.push(await createTemplate(backend, ['append']));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

/** The steps that an undisturbed `ensure` takes. */
async function stepsOf(template: Template): Promise<readonly Step[]> {
  await using installation = await template.copy();
  const child = await pool.take();
  await child.ask('open', { site: installation.site });
  await child.ask('ensure', { operation: installation.operationOf('append') });
  const steps = await child.ask('steps', {});
  await pool.give(child);
  return steps;
}

/** Kills one process at the step, then has three ask for the verdict at once. */
async function ensureAfterDeath(template: Template, step: Step): Promise<void> {
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  const operation = installation.operationOf('append');
  const site = { ...installation.site, leaseMs: LEASE_MS };
  assert.ok(await scene.dieAt(step, 'ensure', { operation }, { site }), `nobody died at ${step}`);
  const callers = await Promise.all(
    Array.from({ length: CALLERS }, () => scene.fresh({ site: installation.site })),
  );
  const answers = await Promise.all(callers.map((child) => child.ask('ensure', { operation })));
  const verdicts = new Set(answers.map(verdictOf));
  const where = `${installation.backend.name}, killed at ${step}`;
  assert.equal(verdicts.size, 1, `${where}: ${[...verdicts].join('\n')}`);
  const [answer] = answers;
  if (answer?.kind === 'committed' && LABELLED.has(installation.backend.name))
    assert.deepEqual(
      Object.keys(answer.generated ?? {}),
      ['entry'],
      `${where}: what was generated`,
    );
  await scene.done(...callers);
  await scene.compare({ stage: 'settled' });
  assert.deepEqual(scene.violations, [], where);
}

function verdictOf({ earlier: _, ...terminal }: Ensured): string {
  return JSON.stringify(terminal);
}

test('killed at any step, three processes that ensure get one verdict and one effect', async () => {
  const [first, ...others] = templates;
  assert.ok(first !== undefined);
  const steps = await stepsOf(first);
  assert.ok(steps.includes('path:claimed') && steps.includes('path:terminal-recorded'));
  // Every step on SQLite, and every step once more on the other backends in turn.
  const cases = steps.flatMap((step, index) => [
    { step, template: first },
    { step, template: others[index % others.length] ?? first },
  ]);
  await runLanes(cases, LANES, ({ step, template }) => ensureAfterDeath(template, step));
});
