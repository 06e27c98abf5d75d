// A payment service that outlives everybody who is killed: a request is never sent twice, and what
// is recorded is what the service did.
import type { PaymentService } from '../../../examples/payment-service/server.ts';
import type { Step } from '../../../src/contract/steps.ts';
import type { Backend } from '../../../test/crash/backends/backend.ts';
import { readService } from '../../../test/crash/backends/http.ts';
import type { Operation } from '../../../test/crash/commands.ts';
import { readLines } from '../../../test/crash/facts.ts';
import { createTemplate, type Installation } from '../../../test/crash/installation.ts';
import type { Pool } from '../../../test/crash/pool.ts';
import { Scene } from '../../../test/crash/scene.ts';
import { REMOTE_STEPS } from '../../../test/crash/steps.ts';
import { keepFact } from '../../facts.ts';
import type { CrashRound, CrashSite } from '../crashes.ts';

const STEPS: readonly Step[] = [
  'path:validated',
  'path:claimed',
  'path:certified',
  ...REMOTE_STEPS,
  'path:terminal-recorded',
];

/** `chosen` leaves out the kills at all other steps. */
export async function openRemote(
  backend: Backend,
  service: PaymentService,
  chosen?: readonly string[],
): Promise<CrashSite> {
  const steps = STEPS.filter((step) => chosen?.includes(step) ?? true);
  const template = await createTemplate(
    backend,
    steps.map(() => 'append'),
  );
  return {
    name: backend.name,
    async round(pool) {
      await using installation = await template.copy();
      return await killAtEveryStep(service, pool, installation, steps);
    },
    [Symbol.asyncDispose]: () => template[Symbol.asyncDispose](),
  };
}

/** One payment for every step, each killed there; then two fresh processes recover all of them. */
async function killAtEveryStep(
  service: PaymentService,
  pool: Pool,
  installation: Installation,
  steps: readonly Step[],
): Promise<CrashRound> {
  await using scene = new Scene(pool, installation);
  const { operations } = installation;
  for (const [index, step] of steps.entries())
    await scene.dieAt(step, 'execute', { operation: operations[index] as Operation });
  const [one, two] = await scene.openPair();
  await Promise.all([one.ask('recover', {}), two.ask('recover', {})]);
  if ((await two.ask('verify', {})).kind !== 'intact')
    scene.complain('the journal does not verify');
  const left: { step: string; why: string }[] = [];
  for (const [index, operation] of operations.entries()) {
    const step = steps[index] ?? '';
    const verdict = await settledAs(scene, service, operation);
    if (verdict === 'indeterminate') left.push({ step, why: 'no answer, and nothing to find' });
    const again = await one.ask('execute', { operation });
    const expected = verdict === 'none' ? 'committed' : 'rejected';
    if (again.kind !== expected)
      scene.complain(`${step}: presented again: ${JSON.stringify(again)}`);
    complainAboutSending(scene, service, operation);
    const { arrivals, payments } = readService(service, installation, operation);
    keepFact({ step, verdict, presentedAgain: again.kind, arrivals, payments });
  }
  const { died, violations } = scene.result();
  return { backend: installation.backend.name, planned: steps, died, violations, left };
}

/** The verdict that recovery left. The service and the released work must agree with it. */
async function settledAs(
  scene: Scene,
  service: PaymentService,
  operation: Operation,
): Promise<string> {
  const { installation } = scene;
  const [one, two] = await scene.openPair();
  const verdict = (await two.ask('terminal', { operation }))?.kind ?? 'none';
  const { arrivals, payments } = readService(service, installation, operation);
  const isPaid = payments === 1;
  const told = `${verdict}, arrived ${arrivals} times, paid ${payments} times`;
  if (verdict === 'committed' ? !isPaid : verdict !== 'indeterminate' && arrivals > 0)
    scene.complain(told);
  if (verdict === 'diverged') scene.complain(told);
  const { releases } = installation;
  await Promise.all([one, two].map((child) => child.ask('release', { operation, releases })));
  const released = readLines(releases).filter((line) => line === String(operation.n)).length;
  if (released !== Number(verdict === 'committed'))
    scene.complain(`${verdict}, and released ${released} times`);
  return verdict;
}

function complainAboutSending(scene: Scene, service: PaymentService, operation: Operation): void {
  const { arrivals, payments } = readService(service, scene.installation, operation);
  if (arrivals > 1 || payments > arrivals)
    scene.complain(`operation ${operation.n} arrived ${arrivals} times, paid ${payments} times`);
}
