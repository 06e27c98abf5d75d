import { EffectMatchError } from '../errors.ts';
import { canonical } from './canon.ts';
import { checkCell, checkPatterns } from './constraint.ts';
import type { ApprovedEffect } from './effect.ts';
import type { Approved, Manifest } from './manifest.ts';
import { approvedRecord } from './manifest.ts';
import type { Registration } from './registration.ts';
import { utf8Length } from './utf8.ts';

/**
 * A = canon_p(M) for a manifest that the backend has normalised. Merges equal effects, adds up
 * their counts and sorts by canonical text, so that the same approval always has the same bytes.
 */
export function approvedOutcome(
  manifest: Manifest,
  registration: Registration,
  salt: string,
): Approved {
  const names = new Set(registration.targets.map((target) => target.name));
  const texts: string[] = [];
  for (const effect of manifest.effects) {
    if (!names.has(effect.target)) {
      throw new EffectMatchError(
        'ERR_EM_MANIFEST_INVALID',
        `"${effect.target}" is not registered; register it with the adapter or leave it out of the manifest`,
      );
    }
    refuseUnchanged(registration, effect);
    const { count, ...shape } = effect;
    const text = canonical(shape);
    utf8Length(text); // flattens it, so that it does not hold on to the parts it was joined from
    texts.push(text);
  }
  checkCells(manifest.effects);
  const effects = mergeEqual(manifest.effects, texts);
  const { adapter, requires, watch, settings } = manifest;
  return approvedRecord.adopt({
    version: 1,
    adapter,
    registration: structuredClone(registration),
    effects,
    requires,
    watch,
    ...(settings && { settings }),
    salt,
  });
}

/** The different effects, sorted by their texts, with their counts added up. */
function mergeEqual(
  effects: readonly ApprovedEffect[],
  texts: readonly string[],
): readonly ApprovedEffect[] {
  const order = Array.from(texts.keys()).sort((a, b) => {
    if (texts[a] === texts[b]) return 0;
    return (texts[a] as string) < (texts[b] as string) ? -1 : 1;
  });
  const merged: ApprovedEffect[] = [];
  let last: string | undefined;
  for (const index of order) {
    const effect = effects[index] as ApprovedEffect;
    const same = texts[index] === last ? merged.pop() : undefined;
    merged.push(same === undefined ? effect : { ...same, count: same.count + effect.count });
    last = texts[index];
  }
  return merged;
}

/** Only `row-event` reports an update that changes no column. */
function refuseUnchanged(
  { profile }: Registration,
  { op, target, before, after }: ApprovedEffect,
): void {
  if (op !== 'update' || after === undefined || profile === 'row-event') return;
  if (Object.keys({ ...before, ...after }).length > 0) return;
  throw new EffectMatchError(
    'ERR_EM_MANIFEST_INVALID',
    `update "${target}": it changes no column, so nothing would be observed under ${profile}; leave the effect out`,
  );
}

/**
 * Refuses constraints that cannot be evaluated. Runs after normalisation, which may change the type
 * of a range's bounds, and again on every outcome passed in, which may never have been normalised.
 * An error found only at comparison would cost the occurrence.
 */
export function checkCells(effects: readonly ApprovedEffect[]): void {
  const patterns = new Set<string>();
  for (const { target, key, before, after } of effects) {
    for (const cells of [key, before, after]) {
      for (const [column, cell] of Object.entries(cells ?? {})) {
        if ('matches' in cell) patterns.add(cell.matches);
        else checkCell(cell, `${target}.${column}`);
      }
    }
  }
  checkPatterns(patterns);
}
