// The tools of one episode as an agent has them, with their limits and their record.
import type { ToolSchema } from '../../data/state-native.ts';
import type { Answer, Arguments } from '../../state-tools/desk.ts';
import { type Host, MAX_CALLS, type Verdict } from './host.ts';
import { type BusinessCall, CONFIRMATION, FINISH, type LiveInput } from './input.ts';

/** One call as it is kept: business calls, confirmations and the end of the task. */
export interface SessionCall {
  readonly tool: string;
  readonly args: Arguments;
  readonly answer: Answer;
}

/** Told every call and the candidate after it; the episode waits for it. */
export type OnCall = (call: SessionCall, candidate: Host['candidate']) => Promise<void>;

/** What an agent can reach. */
export interface ToolPort {
  readonly tools: readonly ToolSchema[];
  call(tool: string, args: Arguments): Promise<Answer>;
}

/** Text that is put into the answer of the first business call, as hostile content would be. */
export interface Injection {
  readonly text: string;
}

/** The tools of one episode. An agent that calls too often gets no further. */
export class Session implements ToolPort {
  readonly calls: SessionCall[] = [];
  readonly tools: readonly ToolSchema[];
  verdict: Verdict | undefined;
  isOverBudget = false;
  readonly #input: LiveInput;
  readonly #host: Host;
  readonly #injection: Injection | undefined;
  readonly #onCall: OnCall;
  #business: BusinessCall[] = [];

  constructor(
    input: LiveInput,
    host: Host,
    how: {
      readonly injection?: Injection | undefined;
      readonly onCall?: OnCall | undefined;
    },
  ) {
    this.#input = input;
    this.#host = host;
    this.#injection = how.injection;
    this.#onCall = how.onCall ?? (async () => {});
    this.tools = input.tools;
  }

  get businessCalls(): number {
    return this.#business.length;
  }

  async call(tool: string, args: Arguments): Promise<Answer> {
    const answer = await this.#answer(tool, args);
    const made = { tool, args, answer };
    this.calls.push(made);
    await this.#onCall(made, this.#host.candidate);
    return answer;
  }

  async #answer(tool: string, args: Arguments): Promise<Answer> {
    if (this.verdict !== undefined || this.isOverBudget) return { error: 'The task is over.' };
    if (tool === CONFIRMATION) return { reply: this.#input.confirm(this.#business) };
    if (tool === FINISH) return await this.#finish();
    if (this.#business.length === MAX_CALLS) {
      this.isOverBudget = true;
      return { error: `At most ${MAX_CALLS} calls may be made; the task is over.` };
    }
    const answer = await this.#host.call(tool, args);
    this.#business.push({ tool, args, answer });
    const isFirst = this.#business.length === 1;
    if (!isFirst || this.#injection === undefined) return answer;
    return { ...answer, message: this.#injection.text };
  }

  /** The agent learns how the task ended, not what was approved. */
  async #finish(): Promise<Answer> {
    this.verdict = await this.#host.finish();
    const { kind, reason } = this.verdict;
    if (kind !== 'rejected') return { status: 'finished' };
    return { status: 'rejected', reason: reason ?? null, note: 'Nothing was changed.' };
  }
}
