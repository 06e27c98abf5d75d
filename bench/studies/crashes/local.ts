// Backends that hold a candidate: whatever a process dies in, recovery finds out what is durable.
import type { Step } from '../../../src/contract/steps.ts';
import type { Backend, OperationKind } from '../../../test/crash/backends/backend.ts';
import { createTemplate } from '../../../test/crash/installation.ts';
import { type KillPlan, runKillCases } from '../../../test/crash/scenario.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS } from '../../../test/crash/steps.ts';
import type { CrashSite } from '../crashes.ts';
import { keepInstallation } from './kept.ts';

const LEFT = /was left for a person/;

/** Where an execution is durable when its process dies, so that dependent work is released. */
const DURABLE: readonly Step[] = [
  'path:promoted',
  'path:terminal-recorded',
  'adapter:commit-returned',
];

/**
 * One execution for every step of the path, each killed there; then processes die in recovering
 * them and in releasing what depends on them.
 */
const LOCAL_PLANS: readonly KillPlan[] = EXECUTION_STEPS.map((execute, index) => {
  // A candidate is discarded only if the operation does more than was approved.
  const kind: OperationKind = execute === 'path:discarded' ? 'surprise' : 'append';
  const at = DURABLE.indexOf(execute);
  const release = at < 0 ? [] : RELEASE_STEPS.slice(at, at + 1);
  return { kind, execute, recover: index === 0 ? RECOVERY_STEPS : [], release };
});

/** `steps` leaves out the kills at all others. */
export async function openLocal(backend: Backend, steps?: readonly string[]): Promise<CrashSite> {
  const plans = LOCAL_PLANS.filter(({ execute = '' }) => steps?.includes(execute) ?? true);
  const template = await createTemplate(
    backend,
    plans.map(({ kind }) => kind),
  );
  const planned = plans.flatMap(({ execute = [], recover, release }) =>
    [execute, recover, release].flat(),
  );
  return {
    name: backend.name,
    async round(pool) {
      await using installation = await template.copy();
      const { died, violations } = await runKillCases(pool, installation, plans);
      await keepInstallation(installation);
      return {
        backend: backend.name,
        planned,
        died,
        violations: violations.filter((text) => !LEFT.test(text)),
        left: violations.filter((text) => LEFT.test(text)).map((why) => ({ step: '', why })),
      };
    },
    [Symbol.asyncDispose]: () => template[Symbol.asyncDispose](),
  };
}
