// Our own business tools for the three domains, based on the answers of the benchmark's tools.
import { applyPatch, type PatchStep } from '../data/patch.ts';
import type { Snapshot } from '../data/state-bench.ts';
import {
  type Answer,
  type Arguments,
  type BusinessState,
  Desk,
  type DeskData,
  type StateTools,
} from './desk.ts';
import { shoppingTools } from './shopping.ts';
import { supportTools } from './support.ts';
import { travelTools } from './travel.ts';

const DOMAINS: { readonly [domain: string]: StateTools } = {
  shopping_assistant: shoppingTools,
  customer_support: supportTools,
  travel: travelTools,
};

/** The call that restores the state between measurements and clears the tools' memory. */
export const RESET = 'bench_reset';

/** The data that the tools of one task are built from. It can be sent to another thread. */
export interface ToolKit {
  readonly desk: DeskData;
  /** A hidden change, made after this many calls. */
  readonly fault?: { readonly after: number; readonly steps: readonly PatchStep[] };
  /** The state that {@link RESET} restores. */
  readonly reset?: Snapshot;
}

/** The tools of one task, with what they remember between calls. */
export class BusinessTools {
  readonly names: readonly string[];
  readonly #kit: ToolKit;
  readonly #tools: StateTools;
  #desk: Desk;
  #calls = 0;

  constructor(kit: ToolKit) {
    const tools = DOMAINS[kit.desk.domain];
    if (tools === undefined) throw new Error(`there are no tools for ${kit.desk.domain}`);
    this.names = Object.keys(tools);
    this.#kit = kit;
    this.#tools = tools;
    this.#desk = new Desk(kit.desk, {});
  }

  /** Runs one call, which may change `state`. */
  call(state: BusinessState, tool: string, given: unknown): Answer {
    const { fault, reset } = this.#kit;
    if (tool === RESET && reset !== undefined) return this.#reset(state, reset);
    const run = Object.hasOwn(this.#tools, tool) ? this.#tools[tool] : undefined;
    if (run === undefined) return { error: `There is no tool ${tool}.` };
    this.#desk.state = state;
    const answer = run(this.#desk, given as Arguments);
    this.#calls += 1;
    if (this.#calls === fault?.after) Object.assign(state, applyPatch(state, fault.steps));
    return answer;
  }

  #reset(state: BusinessState, initial: Snapshot): Answer {
    this.#desk = new Desk(this.#kit.desk, {});
    this.#calls = 0;
    Object.assign(state, structuredClone(initial));
    return { status: 'reset' };
  }
}

/** The error in an answer. A refusal by status, such as `rejected`, is not an error. */
export function errorOf({ error, success }: Answer): string | undefined {
  if (typeof error === 'string' && error !== '') return error;
  return success === false ? 'the call did not succeed' : undefined;
}
