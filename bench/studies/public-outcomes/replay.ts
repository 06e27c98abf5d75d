import { isDeepStrictEqual } from 'node:util';
import { applyPatch, type Json } from '../../data/patch.ts';
import type { Snapshot, StateTask, VariantName } from '../../data/state-bench.ts';
import type { Answer, BusinessState } from '../../state-tools/desk.ts';
import { BusinessTools, errorOf, type ToolKit } from '../../state-tools/tools.ts';

/** One call as an agent makes it, and what the native simulator did with it. */
export interface ReplayedCall {
  readonly tool: string;
  readonly args: Json;
  /** The state after the call, where it is another one than before. */
  readonly after?: Snapshot;
  /** The tool's own error message. */
  readonly error?: string;
}

/**
 * The calls of a variant with their recorded consequences. Up to the call that is left out or
 * repeated they are those of the clean sequence. Of what follows only the end was recorded, so it
 * comes with the last call: no condition decides anything in between.
 */
export function replayVariant(task: StateTask, name: VariantName): readonly ReplayedCall[] {
  const variant = task.variants[name];
  if (variant === undefined) throw new Error(`${task.packet.taskId} has no variant ${name}`);
  const at = name === 'clean' ? task.calls.length : selectedCall(task, name);
  const before = task.calls.slice(0, at);
  const selected = task.calls.slice(at, at + 1);
  const repeated = name.startsWith('duplicate') ? [...selected, ...selected] : [];
  const sequence = [...before, ...repeated, ...task.calls.slice(at + 1)];
  let state = task.packet.initial;
  return sequence.map(({ tool, arguments: args, diff }, place): ReplayedCall => {
    const previous = state;
    if (place < at) state = applyPatch(state, diff);
    if (place === sequence.length - 1) state = variant.final;
    const error = variant.errors.get(place);
    return {
      tool,
      args,
      ...(!isDeepStrictEqual(state, previous) && { after: state }),
      ...(error !== undefined && { error }),
    };
  });
}

function selectedCall({ firstWrite, firstMutation, packet }: StateTask, name: VariantName): number {
  const at = name.endsWith('Mutation') ? firstMutation : firstWrite;
  if (at === null) throw new Error(`${packet.taskId} has no call that ${name} selects`);
  return at;
}

/**
 * The same calls, with something else as the end of it: a fault of the state that no call shows.
 */
export function withFinal(
  calls: readonly ReplayedCall[],
  change: (final: Snapshot) => Snapshot,
): ReplayedCall[] {
  const last = calls.at(-1);
  const final = calls.findLast(({ after }) => after !== undefined)?.after;
  if (last === undefined || final === undefined)
    throw new Error('a replay without changes has no end to alter');
  return [...calls.slice(0, -1), { ...last, after: change(final) }];
}

/** What runs the calls of one execution, on the state that it is given. */
export interface CallRunner {
  /** Changes the state as the tool does, and returns its error, if it reported one. */
  run(state: { [namespace: string]: unknown }, tool: string, args: unknown): string | undefined;
}

/** Our own tools where there is a kit for them, otherwise what was recorded. */
export function runnerFor(given: {
  readonly calls: readonly ReplayedCall[];
  readonly kit?: ToolKit | undefined;
}): CallRunner {
  return given.kit === undefined ? new Simulator(given.calls) : new OwnTools(given.kit);
}

/** Our own business tools. */
export class OwnTools implements CallRunner {
  readonly #tools: BusinessTools;

  constructor(kit: ToolKit) {
    this.#tools = new BusinessTools(kit);
  }

  call(state: { [namespace: string]: unknown }, tool: string, args: unknown): Answer {
    return this.#tools.call(state as BusinessState, tool, args);
  }

  run(state: { [namespace: string]: unknown }, tool: string, args: unknown): string | undefined {
    return errorOf(this.call(state, tool, args));
  }
}

/** A simulator that has one sequence of calls in it and answers only to that. */
export class Simulator implements CallRunner {
  readonly #calls: readonly ReplayedCall[];
  #next = 0;

  constructor(calls: readonly ReplayedCall[]) {
    this.#calls = calls;
  }

  /** Changes the given state as the native tool did, and returns its error, if it reported one. */
  run(state: { [namespace: string]: unknown }, tool: string, args: unknown): string | undefined {
    const call = this.#calls[this.#next];
    if (call === undefined || call.tool !== tool || !isDeepStrictEqual(call.args, args)) {
      throw new Error(`call ${this.#next + 1} was not recorded like this: ${tool}`);
    }
    this.#next += 1;
    if (call.after !== undefined) Object.assign(state, structuredClone(call.after));
    return call.error;
  }
}
