import type { Step } from '../../src/contract/steps.ts';
import type { Recovered } from '../../src/runtime/recover.ts';
import { isApproved } from './backends/backend.ts';
import type { CommandName, Commands, Operation, Site } from './commands.ts';
import { type Facts, readFacts, readLines } from './facts.ts';
import { type Installation, taskOf } from './installation.ts';
import type { Answer, Child, Pool } from './pool.ts';
import { type Expectation, findViolations } from './violations.ts';

/** What one case did and what was wrong with it. */
export interface CaseResult {
  readonly kills: number;
  /** Steps at which a process really died. */
  readonly died: readonly Step[];
  readonly violations: readonly string[];
}

/**
 * One case as it runs: it counts its dead, collects what is wrong, and returns every process that
 * it borrowed.
 */
export class Scene implements AsyncDisposable {
  readonly installation: Installation;
  readonly died: Step[] = [];
  readonly violations: string[] = [];
  readonly #pool: Pool;
  readonly #lent = new Set<Child>();
  #pair: Promise<readonly [Child, Child]> | undefined;
  #kills = 0;

  constructor(pool: Pool, installation: Installation) {
    this.#pool = pool;
    this.installation = installation;
  }

  /** A process that has nothing open yet, for good or to be killed. */
  async borrow(options: { readonly toDie: boolean } = { toDie: false }): Promise<Child> {
    const child = await this.#pool.take(options);
    this.#lent.add(child);
    return child;
  }

  /** A process that knows nothing of this installation, with a runtime newly opened on it. */
  async fresh(options: { readonly site?: Site; readonly toDie?: boolean } = {}): Promise<Child> {
    const { site = this.installation.site, toDie = false } = options;
    const child = await this.borrow({ toDie });
    await child.ask('open', { site });
    return child;
  }

  /** Gives a process back before the case ends. */
  async done(...children: readonly Child[]): Promise<void> {
    for (const child of children) this.#lent.delete(child);
    await Promise.all(
      children.filter((child) => child.alive).map((child) => this.#pool.give(child)),
    );
  }

  /**
   * Has a fresh process run the command and die at the step, if the step lies on its way. Says
   * whether it died.
   */
  async dieAt<Name extends CommandName>(
    step: Step,
    name: Name,
    asks: Commands[Name]['asks'],
    { site = this.installation.site, passes = 0 }: { site?: Site; passes?: number } = {},
  ): Promise<boolean> {
    const { deaths } = this.installation;
    const child = await this.fresh({ toDie: true, site });
    await child.ask('arm', { arming: { step, signal: 'SIGKILL', log: deaths, passes } });
    const before = readLines(deaths).length;
    const died = this.buried(await child.call(name, asks));
    const logged = readLines(deaths).slice(before).join();
    if (logged !== (died ? step : ''))
      this.complain(`a death at ${step} was logged as "${logged}"`);
    if (died) this.died.push(step);
    await this.done(child);
    return died;
  }

  /** Whether the answer is a death, which must then be by SIGKILL and nothing else. */
  buried(answer: Answer<unknown>): boolean {
    if (answer.kind === 'failed')
      this.complain(`a process failed: ${answer.code} ${answer.message}`);
    if (answer.kind !== 'died') return false;
    if (answer.exit.signal === 'SIGKILL') this.#kills += 1;
    else this.complain(`a process ended by itself: ${JSON.stringify(answer.exit)}`);
    return true;
  }

  /** Runs the operation undisturbed. */
  async execute(operation: Operation): Promise<void> {
    const child = await this.fresh();
    this.#expectEnd(operation, await child.ask('execute', { operation }));
    await this.done(child);
  }

  /** Two processes recover at the same moment. */
  async recoverTwice(): Promise<void> {
    await this.#recover(await this.openPair());
  }

  /** The same by processes that are opened for it. */
  async recoverTogether(workers: number): Promise<void> {
    const fresh = () => Array.from({ length: workers - 1 }, () => this.fresh());
    const children = await Promise.all([this.fresh(), ...fresh()]);
    await this.#recover(children);
    await this.done(...children);
  }

  /**
   * Two processes for all that is done after a death. They open when the first of it is done, and
   * stay: opening takes longer than most of what they do.
   */
  openPair(): Promise<readonly [Child, Child]> {
    this.#pair ??= Promise.all([this.fresh(), this.fresh()]);
    return this.#pair;
  }

  /** Nothing is left for a person, and those who recover never say different things. */
  async #recover(children: readonly [Child, ...Child[]]): Promise<void> {
    const answers = await Promise.all(children.map((child) => child.ask('recover', {})));
    const all = answers.flat();
    const settled = new Map<string, string>();
    for (const result of all) {
      const told = toldBy(result);
      const other = settled.get(result.occurrence) ?? told;
      if (result.kind === 'unresolved')
        this.complain(`${result.task} was left for a person: ${result.why}`);
      if (result.kind !== 'settled') continue;
      if (other !== told)
        this.complain(`${result.task}: one recoverer says ${other}, another ${told}`);
      settled.set(result.occurrence, told);
    }
    for (const result of all) {
      if (result.kind === 'running' && !settled.has(result.occurrence)) {
        this.complain(`${result.task} was left as running, although nobody runs it: ${result.why}`);
      }
    }
    await this.#verify(children[0]);
  }

  /**
   * Two processes present the license again and ask for the same release at the same moment: the
   * license buys nothing more, and one of them is released where that is due, never both. Then one
   * checks the whole journal.
   */
  async releaseTwice(...operations: readonly Operation[]): Promise<void> {
    const { releases } = this.installation;
    const [one, two] = await this.openPair();
    for (const operation of operations) {
      await this.#presentAgain(one, operation);
      const ask = (child: Child) => child.ask('release', { operation, releases });
      const both = await Promise.all([ask(one), ask(two)]);
      if (both.every((result) => result.kind === 'released')) {
        this.complain(`operation ${operation.n} was released to both of two workers`);
      }
    }
    await this.#verify(two);
  }

  /** Every row and seal of the journal, as the product itself checks them. */
  async #verify(child: Child): Promise<void> {
    const verdict = await child.ask('verify', {});
    if (verdict.kind !== 'intact')
      this.complain(`the journal does not verify: ${JSON.stringify(verdict)}`);
  }

  /**
   * Compares the files, by code that shares nothing with the product, also while somebody holds a
   * lock.
   */
  async compare(expectation: Expectation): Promise<Facts> {
    const facts = await readFacts(this.installation);
    this.violations.push(...findViolations(this.installation, facts, expectation));
    return facts;
  }

  complain(what: string): void {
    this.violations.push(what);
  }

  result(): CaseResult {
    return { kills: this.#kills, died: this.died, violations: this.violations };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.done(...this.#lent);
  }

  /** A spent license buys nothing; one whose process died before the claim is still good, once. */
  async #presentAgain(child: Child, operation: Operation): Promise<void> {
    const facts = await readFacts(this.installation);
    const wasClaimed = claimedTasks(facts).has(taskOf(operation));
    const terminal = await child.ask('execute', { operation });
    if (isVoid(facts, operation) && terminal.kind !== 'rejected')
      this.complain(`a void license bought ${JSON.stringify(terminal)}`);
    else if (!wasClaimed && !isVoid(facts, operation)) this.#expectEnd(operation, terminal);
    else if (!wasClaimed) return;
    else if (terminal.kind !== 'rejected' || terminal.reason !== 'spent') {
      this.complain(`a spent license bought ${JSON.stringify(terminal)}`);
    }
  }

  #expectEnd(operation: Operation, terminal: { readonly kind: string }): void {
    const expected = isApproved(operation.kind) ? 'committed' : 'rejected';
    if (terminal.kind !== expected) {
      this.complain(
        `operation ${operation.n} (${operation.kind}) ended as ${JSON.stringify(terminal)}`,
      );
    }
  }
}

/** What a recoverer says about an occurrence, in one line that can be compared. */
export function toldBy(result: Recovered): string {
  return result.kind === 'settled'
    ? `${result.terminal.kind} by ${result.terminal.execution}`
    : result.kind;
}

function isVoid({ markers }: Facts, { occurrence }: Operation): boolean {
  return markers.some((one) => one.occurrence === occurrence && one.disposition === 'void');
}

/** The tasks whose occurrence somebody has spent. */
export function claimedTasks(facts: Facts): ReadonlySet<string | undefined> {
  return new Set(
    facts.journals.flat().flatMap((line) => (line.kind === 'claim' ? [line.record.task] : [])),
  );
}
