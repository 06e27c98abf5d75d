import { invariant, unreachable } from '../errors.ts';
import { effectKey } from './bag.ts';
import type { Diff } from './diff.ts';
import type { Effect } from './effect.ts';
import type { GeneratedValues } from './generated.ts';
import { type MatchContext, matchBags, matchWrites, type Prepared } from './match.ts';
import type { Observation } from './observation.ts';
import { utf8Length } from './utf8.ts';

/** Whether E matched A. The terminal says how the execution ended. */
export type Outcome =
  | {
      readonly kind: 'EXACT';
      readonly effects: readonly Effect[];
      /** The values of generated labels, if the approval has any. */
      readonly generated?: GeneratedValues;
    }
  | { readonly kind: 'DIVERGED'; readonly effects: readonly Effect[]; readonly diff: Diff }
  | { readonly kind: 'INDETERMINATE'; readonly gaps: readonly string[] };

/**
 * The only place where A is compared with E (Definition 3). EXACT requires a complete observation
 * and equal multisets. Whatever could not be decided is INDETERMINATE, never a guess.
 */
export function classify(
  prepared: Prepared,
  observation: Observation,
  context: MatchContext,
): Outcome {
  if (observation.kind === 'incomplete') return { kind: 'INDETERMINATE', gaps: observation.gaps };
  if (observation.writes !== undefined && matchWrites(prepared, observation.writes()))
    return {
      kind: 'EXACT',
      get effects() {
        return observation.effects;
      },
    };
  const { effects } = observation;
  const match = matchBags(prepared, effects, context);
  switch (match.kind) {
    case 'equal':
      return {
        kind: 'EXACT',
        effects,
        ...(match.generated && { generated: match.generated }),
      };
    case 'different':
      return { kind: 'DIVERGED', effects, diff: match.diff };
    case 'budget':
      return {
        kind: 'INDETERMINATE',
        gaps: [
          `Comparison was given up after ${match.steps} steps: too many effects could stand for each other. ` +
            'State more columns exactly, or use fewer generated labels.',
        ],
      };
    default:
      return unreachable(match);
  }
}

/**
 * E as text, for digesting: equal multisets give the same text in any order, and different ones
 * give different texts. One line per distinct effect, `<count>x<key>`, sorted by key; keys are
 * self-delimiting. Yields lines, because the whole text may exceed the maximum string length.
 */
export function* observedLines(effects: Iterable<Effect>): Generator<string> {
  const keys = Array.from(effects, settledKey).sort();
  for (let start = 0, end = 0; start < keys.length; start = end) {
    while (keys[end] === keys[start]) end += 1;
    const line = `${end - start}x${keys[start]}\n`;
    // Digests cover UTF-8, in which all lone surrogates look alike.
    invariant(line.isWellFormed(), 'observed values are well-formed text');
    yield line;
  }
}

/** Measuring flattens the text, which would otherwise keep every part it was joined from. */
function settledKey(effect: Effect): string {
  const key = effectKey(effect);
  utf8Length(key);
  return key;
}
