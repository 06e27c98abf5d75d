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
/** So many deaths in one installation, before the callers come. */
const DEATHS = 7;
const templates: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(LANES * CALLERS + 2);
  for (const backend of [...BACKENDS_AND_LEDGERS, ...MARIADB])
    templates.push(await createTemplate(backend, Array(DEATHS).fill('append')));
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

/** Kills a process at each of the steps, then has three ask for each verdict at once. */
async function ensureAfterDeaths(template: Template, steps: readonly Step[]): Promise<void> {
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  const { name } = installation.backend;
  const killed = installation.operations.slice(0, steps.length);
  const site = { ...installation.site, leaseMs: LEASE_MS };
  for (const [index, operation] of killed.entries()) {
    const step = steps[index] as Step;
    assert.ok(await scene.dieAt(step, 'ensure', { operation }, { site }), `no death at ${step}`);
  }
  const callers = await Promise.all(
    Array.from({ length: CALLERS }, () => scene.fresh({ site: installation.site })),
  );
  for (const [index, operation] of killed.entries()) {
    const where = `${name}, killed at ${steps[index]}`;
    const answers = await Promise.all(callers.map((child) => child.ask('ensure', { operation })));
    const verdicts = new Set(answers.map(verdictOf));
    assert.equal(verdicts.size, 1, `${where}: ${[...verdicts].join('\n')}`);
    const [answer] = answers;
    if (answer?.kind === 'committed' && LABELLED.has(name))
      assert.deepEqual(Object.keys(answer.generated ?? {}), ['entry'], `${where}: generated`);
  }
  await scene.done(...callers);
  await scene.compare({ stage: 'settled' });
  assert.deepEqual(scene.violations, [], `${name}, killed at ${steps.join(', ')}`);
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
  const cases = others.map((template, at) => {
    const own = steps.filter((_, index) => index % others.length === at);
    return { template, steps: own };
  });
  for (let from = 0; from < steps.length; from += DEATHS)
    cases.push({ template: first, steps: steps.slice(from, from + DEATHS) });
  await runLanes(cases, LANES, (one) => ensureAfterDeaths(one.template, one.steps));
});
