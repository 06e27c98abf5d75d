import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EffectMatchError } from '../../src/errors.ts';
import { randomOf } from '../random.ts';
import type { Subject } from './subjects.ts';

/** What became of the inputs of one parser. */
export interface Tally {
  inputs: number;
  accepted: number;
  readonly codes: Map<string, number>;
}

export interface Campaign {
  readonly inputs: number;
  readonly tallies: ReadonlyMap<string, Tally>;
  /** Bytes on the heap after a collection: when every parser is warm, and at the end. */
  readonly heap: { readonly warm: number; readonly end: number };
}

const WARM_ROUNDS = 5;

/**
 * Hands damaged inputs to every parser, each round a share to each. Throws at the first input that
 * is accepted wrongly or that meets anything but a documented refusal, and names the case, which
 * its label alone repeats.
 */
export function runCampaign(
  subjects: readonly Subject[],
  seed: string,
  rounds: number,
  only?: string,
): Campaign {
  const tallies = new Map<string, Tally>();
  let inputs = 0;
  let warm = 0;
  for (let round = 0; round < rounds; round += 1) {
    if (round === Math.min(WARM_ROUNDS, rounds - 1)) warm = measureHeap();
    for (const subject of subjects) {
      const tally = tallies.get(subject.name) ?? {
        inputs: 0,
        accepted: 0,
        codes: new Map<string, number>(),
      };
      tallies.set(subject.name, tally);
      for (let turn = 0; turn < subject.share; turn += 1) {
        const label = `${seed}/${subject.name}/${round}/${turn}`;
        if (only !== undefined && only !== label) continue;
        const answer = tryOne(subject, label);
        tally.inputs += 1;
        if (answer === 'accepted') tally.accepted += 1;
        else tally.codes.set(answer, 1 + (tally.codes.get(answer) ?? 0));
        inputs += 1;
      }
    }
  }
  return { inputs, tallies, heap: { warm, end: measureHeap() } };
}

function tryOne(subject: Subject, label: string): string {
  try {
    return subject.attempt(randomOf(label)) ?? 'accepted';
  } catch (error) {
    if (error instanceof EffectMatchError && subject.codes.includes(error.code)) return error.code;
    const found =
      error instanceof EffectMatchError ? `${error.code}, which it never should` : String(error);
    throw new assert.AssertionError({
      message: `case ${label}: ${subject.name} answered ${found}`,
    });
  }
}

function measureHeap(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
