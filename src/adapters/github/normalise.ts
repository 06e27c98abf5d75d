import { normaliseManifest } from '../../backend/normalise.ts';
import { invalid } from '../../http/errors.ts';
import { canonical } from '../../protocol/canon.ts';
import type { ApprovedEffect, CellRow, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row } from '../../protocol/value.ts';
import { FIELDS, ISSUE, issueSchema } from './issue.ts';

/** Reads the current registered fields of an issue; null if it does not exist. */
type ReadFields = (number: number) => Promise<Row | null>;

/**
 * Completes the manifest of one write with all registered fields. Fields that a change does not
 * name keep their current values. These values become required, so that a change by others before
 * the write makes the approval stale.
 */
export async function normaliseChange(
  registration: Registration,
  manifest: Manifest,
  read: ReadFields,
): Promise<Manifest> {
  const normalised = normaliseManifest(issueSchema(registration), manifest);
  const [effect, ...more] = normalised.effects;
  // A manifest without effects only declares the state that an operation contract reads.
  if (effect === undefined) return normalised;
  if (more.length > 0 || effect.count !== 1)
    throw invalid('approve one change of one issue at a time: each is one request');
  if (effect.op === 'delete') throw invalid('issues cannot be deleted; close it instead');
  if (effect.op === 'update') return await completeUpdate(normalised, effect, read);
  if (!('generated' in (effect.key?.number ?? {})))
    throw invalid("GitHub numbers issues itself: approve number: generated('issue')");
  if (exactFields(effect.after).state !== 'open')
    throw invalid('a new issue is open; close it afterwards');
  return normalised;
}

async function completeUpdate(
  manifest: Manifest,
  { key, before, after: stated = {} }: ApprovedEffect,
  read: ReadFields,
): Promise<Manifest> {
  const cell = key?.number ?? { any: true };
  const number = issueNumberOf({
    target: ISSUE.name,
    key: 'is' in cell ? { number: cell.is } : {},
  });
  const required = manifest.requires.find((row) => row.key.number === number)?.row;
  const current = isWhole(required) ? required : await read(number);
  if (current === null) throw invalid(`issue ${number} does not exist`);
  checkBefore(number, before, current);
  if (stated.number !== undefined) throw invalid('the number of an issue cannot be changed');
  const now = asCells(current);
  const after = asCells(exactFields({ ...now, ...stated }));
  if (canonical(after) === canonical(now))
    throw invalid(`issue ${number} has all of these fields already; there is nothing to approve`);
  const { name: target } = ISSUE;
  const requirement = { target, key: { number }, row: current };
  return {
    ...manifest,
    effects: [
      {
        op: 'update',
        target,
        key: { number: { is: number } },
        after,
        count: 1,
      },
    ],
    requires: isWhole(required) ? manifest.requires : [...manifest.requires, requirement],
  };
}

/** The stated previous values of an issue must be its current ones. */
function checkBefore(number: number, before: CellRow | undefined, current: Row): void {
  for (const [field, cell] of Object.entries(before ?? {})) {
    if ('any' in cell) continue;
    if (!('is' in cell)) throw invalid(`"${field}" must be approved with an exact value`);
    if (canonical(cell.is) !== canonical(current[field] ?? null))
      throw invalid(`the ${field} of issue ${number} is not what the manifest says; read it again`);
  }
}

/** The registered fields. Only exact values can be sent, and only sent values can be compared. */
export function exactFields(cells: CellRow | undefined): Row {
  const exact = FIELDS.map((field) => {
    const cell = cells?.[field];
    if (cell !== undefined && 'is' in cell) return [field, cell.is] as const;
    throw invalid(`"${field}" must be approved with an exact value`);
  });
  return Object.fromEntries(exact);
}

/** The registered fields, each with exactly this value. */
export function asCells(fields: Row): CellRow {
  return Object.fromEntries(FIELDS.map((field) => [field, { is: fields[field] ?? null }]));
}

/** Whether the row has all registered fields. */
export function isWhole(row: Row | null | undefined): row is Row {
  return FIELDS.every((field) => Object.hasOwn(row ?? {}, field));
}

/** The number that identifies an issue. */
export function issueNumberOf({ target, key }: StateRead): number {
  const { number } = key;
  const isNumber = typeof number === 'number' && Number.isSafeInteger(number) && number > 0;
  if (target === ISSUE.name && isNumber) return number;
  throw invalid('an issue is named by its number, for example { number: 7 }');
}
