// Goal: a process that dies or sleeps on the way to a service never has its request sent twice, a
// voided one never sends at all, and what is recorded is what the service did. Method: real
// processes end by SIGKILL, or stop by SIGSTOP, at every step of the remote path; others recover;
// the service counts what arrived.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type PaymentService, startPaymentService } from '../../examples/payment-service/server.ts';
import type { Step } from '../../src/contract/steps.ts';
import { PAYMENTS, REMOTE_BACKENDS, readService } from './backends/http.ts';
import type { Operation } from './commands.ts';
import { readLines } from './facts.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { type Child, Pool } from './pool.ts';
import { RECOVERY_STEPS, RELEASE_STEPS } from './steps.ts';

/**
 * Before the claim, before the permit, after the permit, after the effect: what recovery can find
 * differs.
 */
const STEPS_BY_FATE = {
  unclaimed: ['path:validated'],
  voidable: ['path:claimed', 'path:certified', 'path:request-built'],
  unsent: ['path:permit-consumed', 'adapter:connected'],
  done: ['adapter:response-read', 'path:dispatched', 'path:read-back'],
  recorded: ['path:terminal-recorded'],
} as const satisfies Readonly<Record<string, readonly Step[]>>;
type Fate = keyof typeof STEPS_BY_FATE;
const CASES = Object.entries(STEPS_BY_FATE).flatMap(([fate, steps]) =>
  steps.map((step) => ({ fate: fate as Fate, step: step as Step })),
);

let service: PaymentService;
let pool: Pool;
let kills = 0;
const templates: Template[] = [];

before(async () => {
  service = await startPaymentService();
  process.env[PAYMENTS] = `${service.origin} ${service.token}`;
  pool = new Pool(8);
  for (const backend of REMOTE_BACKENDS) templates.push(await createTemplate(backend, ['append']));
});

after(async () => {
  console.log(`${kills} kills on the remote path`);
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

/** One case per backend, each on a copy of its own. */
async function onEveryBackend(play: (scene: RemoteScene) => Promise<void>): Promise<void> {
  await runLanes(templates, 2, async (template) => {
    await using installation = await template.copy();
    await using scene = new RemoteScene(installation);
    await play(scene);
  });
}

/** One operation on one account, and the processes that have to do with it. */
class RemoteScene implements AsyncDisposable {
  readonly installation: Installation;
  readonly operation: Operation;
  readonly #lent: Child[] = [];
  #pair: Promise<readonly [Child, Child]> | undefined;

  constructor(installation: Installation) {
    this.installation = installation;
    this.operation = installation.operationOf('append');
  }

  async fresh(): Promise<Child> {
    const child = await pool.take();
    this.#lent.push(child);
    await child.ask('open', { site: this.installation.site });
    return child;
  }

  /** Two processes that are not meant to die; the same two in every act of a scene. */
  async pair(): Promise<readonly [Child, Child]> {
    this.#pair ??= Promise.all([this.fresh(), this.fresh()]);
    return await this.#pair;
  }

  arm(child: Child, step: Step, signal: 'SIGKILL' | 'SIGSTOP'): Promise<null> {
    return child.ask('arm', { arming: { step, signal, log: this.installation.deaths } });
  }

  /** Has a fresh process die at the step, and checks that it did. */
  async dieAt(step: Step, name: 'execute' | 'recover' | 'release'): Promise<void> {
    const { operation, installation } = this;
    const child = await this.fresh();
    await this.arm(child, step, 'SIGKILL');
    const answer = await child.call(name, { operation, releases: installation.releases });
    assert.equal(
      answer.kind === 'died' && answer.exit.signal,
      'SIGKILL',
      `${step}: ${JSON.stringify(answer)}`,
    );
    assert.equal(readLines(installation.deaths).at(-1), step);
    kills += 1;
  }

  /**
   * Two processes recover at once, twice; what they leave is what the service did, and the request
   * came once at most.
   */
  async settle(): Promise<string> {
    const [one, two] = await this.pair();
    for (let times = 0; times < 2; times += 1)
      await Promise.all([one.ask('recover', {}), two.ask('recover', {})]);
    assert.equal((await one.ask('verify', {})).kind, 'intact');
    return await this.check(one);
  }

  async check(child: Child): Promise<string> {
    const { operation, installation } = this;
    const terminal = await child.ask('terminal', { operation });
    const { arrivals, payments } = readService(service, installation, operation);
    const verdict = terminal?.kind ?? 'none';
    const told = `${installation.backend.name}: ${verdict}, arrived ${arrivals} times, paid ${payments} times`;
    assert.ok(arrivals <= 1 && payments <= arrivals, told);
    if (verdict === 'committed') assert.equal(payments, 1, told);
    if (verdict === 'rejected' || verdict === 'none') assert.equal(arrivals, 0, told);
    assert.notEqual(verdict, 'diverged', told);
    return verdict;
  }

  /** Two workers ask for the dependent work: once where it is committed, never otherwise. */
  async releaseTwice(expected: number): Promise<void> {
    const { operation, installation } = this;
    const [one, two] = await this.pair();
    const ask = (child: Child) =>
      child.ask('release', { operation, releases: installation.releases });
    await Promise.all([ask(one), ask(two)]);
    assert.ok(readLines(installation.releases).length <= expected, 'released too often');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#lent) {
      if (child.alive) await pool.give(child);
    }
  }
}

const AFTER_DEATH: Readonly<Record<Fate, string>> = {
  unclaimed: 'none',
  voidable: 'rejected',
  unsent: 'indeterminate',
  done: 'committed',
  recorded: 'committed',
};

for (const { fate, step } of CASES) {
  test(`killed at ${step}: ${AFTER_DEATH[fate]}, and nothing is sent again`, async () => {
    await onEveryBackend(async (scene) => {
      await scene.dieAt(step, 'execute');
      const verdict = await scene.settle();
      assert.equal(verdict, AFTER_DEATH[fate]);
      await scene.releaseTwice(verdict === 'committed' ? 1 : 0);
      // The license buys nothing more, unless its process died before the claim.
      const [child] = await scene.pair();
      const again = await child.ask('execute', { operation: scene.operation });
      assert.equal(again.kind, fate === 'unclaimed' ? 'committed' : 'rejected');
      await scene.check(child);
    });
  });
}

for (const step of RECOVERY_STEPS.filter((name) => name.startsWith('recovery:'))) {
  test(`a recoverer that is killed at ${step} leaves the next one the same to do`, async () => {
    for (const death of [
      'path:request-built',
      'path:permit-consumed',
      'path:dispatched',
    ] as const) {
      await onEveryBackend(async (scene) => {
        await scene.dieAt(death, 'execute');
        await scene.dieAt(step, 'recover');
        const fates = {
          'path:request-built': 'rejected',
          'path:permit-consumed': 'indeterminate',
        } as const;
        assert.equal(await scene.settle(), (fates as Record<string, string>)[death] ?? 'committed');
      });
    }
  });
}

for (const step of RELEASE_STEPS) {
  test(`a worker that is killed at ${step} is not released a second time`, async () => {
    await onEveryBackend(async (scene) => {
      const [child] = await scene.pair();
      assert.equal((await child.ask('execute', { operation: scene.operation })).kind, 'committed');
      await scene.dieAt(step, 'release');
      await scene.releaseTwice(1);
    });
  });
}

for (const { fate, step } of CASES) {
  test(`stopped at ${step} and recovered by another process: it never sends what was voided, and never twice`, async () => {
    await onEveryBackend(async (scene) => {
      const zombie = await scene.fresh();
      await scene.arm(zombie, step, 'SIGSTOP');
      const answer = zombie.call('execute', { operation: scene.operation });
      assert.ok(await zombie.stopped(answer), 'the process was not stopped');
      const meanwhile = await scene.settle();
      const found = { ...AFTER_DEATH, unsent: 'indeterminate' }[fate];
      assert.equal(meanwhile, found);
      zombie.signal('SIGCONT');
      const woken = await answer;
      assert.equal(woken.kind, 'done', JSON.stringify(woken));
      const told = woken.kind === 'done' ? woken.value : undefined;
      if (fate === 'voidable') {
        assert.equal(told?.kind === 'rejected' && told.reason, 'interrupted');
        assert.equal(readService(service, scene.installation, scene.operation).arrivals, 0);
      } else {
        assert.equal(told?.kind, 'committed');
        assert.equal(readService(service, scene.installation, scene.operation).payments, 1);
      }
      await scene.settle();
      await scene.releaseTwice(fate === 'voidable' ? 0 : 1);
    });
  });
}
