import { EffectMatchError } from '../errors.ts';
import { type PatternNode, parsePattern, type Range } from './pattern-syntax.ts';

const MAX_STATES = 4096;

/**
 * A state consumes one code point of its set, or forks without consuming any. The last state
 * accepts.
 */
type State =
  | { readonly kind: 'set'; readonly ranges: readonly Range[] }
  | { readonly kind: 'fork'; readonly to: readonly number[] };

/** A compiled `matches` pattern. It always applies to the whole text. */
export interface Pattern {
  readonly source: string;
  readonly states: readonly State[];
}

/**
 * Compiles a pattern in the small language that approvers may use: literals, `.`, classes, `\d \w
 * \s` and their negations, groups, `|`, `* + ?` and counted repetition, over code points. Anything
 * else is refused with its position, because a pattern that its author misreads approves the wrong
 * thing.
 */
export function compilePattern(source: string): Pattern {
  const states: State[] = [];
  emit(parsePattern(source), states, source);
  return { source, states };
}

/** How many ranges of a class are compared in one step. */
const RANGES_PER_STEP = 8;

/**
 * Whether the whole text matches, and how many states were visited. All alternatives advance
 * together, one code point at a time, so the work is at most text length × states for any pattern:
 * the agent chooses the text and must not control the cost. The run stops after `maxSteps`, and
 * `matched` is then meaningless.
 */
export function runPattern(
  pattern: Pattern,
  text: string,
  maxSteps = Number.POSITIVE_INFINITY,
): { readonly matched: boolean; readonly steps: number } {
  const { states } = pattern;
  const seenAt = new Int32Array(states.length + 1).fill(-1);
  let current: number[] = [];
  let steps = 0;
  const enter = (state: number, round: number, list: number[]): void => {
    const pending = [state];
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (seenAt[at] === round) continue;
      seenAt[at] = round;
      steps += 1;
      const found = states[at];
      if (found?.kind === 'fork') pending.push(...found.to);
      else list.push(at);
    }
  };
  let round = 0;
  enter(0, round, current);
  for (const character of text) {
    if (current.length === 0) break;
    if (steps > maxSteps) return { matched: false, steps };
    const codePoint = character.codePointAt(0) ?? 0;
    const next: number[] = [];
    round += 1;
    for (const at of current) {
      const state = states[at];
      if (state?.kind === 'set') steps += Math.floor(state.ranges.length / RANGES_PER_STEP);
      if (state?.kind === 'set' && contains(state.ranges, codePoint)) enter(at + 1, round, next);
    }
    current = next;
  }
  return { matched: current.includes(states.length), steps };
}

function contains(ranges: readonly Range[], codePoint: number): boolean {
  for (const [from, to] of ranges) {
    if (codePoint >= from && codePoint <= to) return true;
  }
  return false;
}

/** Appends the states of a node. A node ends by falling through to the state after its last one. */
function emit(node: PatternNode, states: State[], source: string): void {
  const reserve = (): number => push(states, { kind: 'fork', to: [] }, source);
  switch (node.kind) {
    case 'set':
      push(states, node, source);
      return;
    case 'sequence':
      for (const part of node.parts) emit(part, states, source);
      return;
    case 'choice': {
      const fork = reserve();
      const starts: number[] = [];
      const ends: number[] = [];
      for (const part of node.parts) {
        starts.push(states.length);
        emit(part, states, source);
        ends.push(reserve());
      }
      states[fork] = { kind: 'fork', to: starts };
      for (const end of ends) states[end] = { kind: 'fork', to: [states.length] };
      return;
    }
    case 'repeat': {
      for (let count = 0; count < node.min; count += 1) {
        states[reserve()] = { kind: 'fork', to: [states.length] }; // empty parts count too
        emit(node.part, states, source);
      }
      if (node.max === Number.POSITIVE_INFINITY) {
        const fork = reserve();
        emit(node.part, states, source);
        const back = reserve();
        states[back] = { kind: 'fork', to: [fork] };
        states[fork] = { kind: 'fork', to: [fork + 1, back + 1] };
        return;
      }
      const forks: number[] = [];
      for (let count = node.min; count < node.max; count += 1) {
        forks.push(reserve());
        emit(node.part, states, source);
      }
      for (const fork of forks) states[fork] = { kind: 'fork', to: [fork + 1, states.length] };
    }
  }
}

function push(states: State[], state: State, source: string): number {
  if (states.length >= MAX_STATES) {
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `pattern ${JSON.stringify(source)} needs more than ${MAX_STATES} states; repeat less or nest fewer repetitions`,
    );
  }
  return states.push(state) - 1;
}
