import { canonical } from '../../protocol/canon.ts';
import type { ApprovedEffect, Cell, CellRow, Requirement } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Row } from '../../protocol/value.ts';
import { BLANK, FIELDS, type Field, ISSUE, invalid, normaliseField } from './issue.ts';

/** Reads the registered fields of an issue now; null where there is no such issue. */
export type ReadIssue = (number: number) => Promise<Row | null>;

/**
 * The manifest of one write with all registered fields spelt out: those of a change that it does
 * not name stay as they are now, and that they are so is required, so that a change by others
 * before the write makes the approval stale.
 */
export async function normaliseManifest(manifest: Manifest, read: ReadIssue): Promise<Manifest> {
  const [effect, ...more] = manifest.effects;
  for (const { target, key } of [...manifest.requires, ...manifest.watch])
    numberOf(target, key.number);
  // Without effects it is the state of an operation contract that is normalised.
  if (effect === undefined) return manifest;
  if (more.length > 0 || effect.count !== 1) {
    throw invalid('approve one change of one issue at a time: each is one request');
  }
  if (effect.target !== ISSUE.name)
    throw invalid(`there is no target "${effect.target}"; there is "${ISSUE.name}"`);
  if (effect.op === 'insert') return { ...manifest, effects: [normaliseCreation(effect)] };
  if (effect.op === 'delete') throw invalid('issues cannot be deleted; close it instead');

  const cell = effect.key?.number;
  const number = numberOf(ISSUE.name, cell !== undefined && 'is' in cell ? cell.is : undefined);
  const required = manifest.requires.find(({ key }) => key.number === number)?.row;
  const current = isWhole(required) ? required : await read(number);
  if (current === null) throw invalid(`there is no issue ${number}`);
  const after = Object.fromEntries(
    FIELDS.map((field) => [
      field,
      fieldCell(field, effect.after?.[field]) ?? { is: current[field] ?? null },
    ]),
  );
  checkNames(effect.after);
  checkBefore(number, effect.before, current);
  const changed = FIELDS.some((field) => differs(after[field], current[field]));
  if (!changed)
    throw invalid(`issue ${number} has all of these fields already; there is nothing to approve`);
  const requirement: Requirement = { target: ISSUE.name, key: { number }, row: current };
  const requires = isWhole(required) ? manifest.requires : [...manifest.requires, requirement];
  const update = {
    op: 'update' as const,
    target: ISSUE.name,
    key: { number: { is: number } },
    after,
    count: 1,
  };
  return { ...manifest, effects: [update], requires };
}

function normaliseCreation(effect: ApprovedEffect): ApprovedEffect {
  const { number, ...given } = { ...effect.key, ...effect.after };
  checkNames(given);
  if (number === undefined || !('generated' in number)) {
    throw invalid("GitHub numbers issues itself: approve number: generated('issue')");
  }
  if (given.title === undefined) throw invalid('a new issue needs a title');
  const after = Object.fromEntries(
    FIELDS.map((field) => [field, fieldCell(field, given[field]) ?? { is: BLANK[field] }]),
  );
  if (canonical(after.state) !== canonical({ is: 'open' }))
    throw invalid('a new issue is open; close it afterwards');
  return { op: 'insert', target: ISSUE.name, key: { number }, after, count: 1 };
}

/** Only exact values can be sent, and only what is sent or known can be compared. */
function fieldCell(field: Field, cell: Cell | undefined): Cell | undefined {
  if (cell === undefined) return undefined;
  if (!('is' in cell)) throw invalid(`"${field}" must be approved with an exact value`);
  return { is: normaliseField(field, cell.is) };
}

function checkNames(cells: CellRow | undefined): void {
  for (const name of Object.keys(cells ?? {})) {
    if (!FIELDS.includes(name as Field)) normaliseField(name, null);
  }
}

/** What the manifest says an issue was before must be what it is now. */
function checkBefore(number: number, before: CellRow | undefined, current: Row): void {
  for (const [field, cell] of Object.entries(before ?? {})) {
    if ('any' in cell) continue;
    const expected = fieldCell(field as Field, cell);
    if (differs(expected, current[field])) {
      throw invalid(`issue ${number} has another ${field} than the manifest says; read it again`);
    }
  }
}

function differs(cell: Cell | undefined, value: Row[string] | undefined): boolean {
  return canonical(cell) !== canonical({ is: value ?? null });
}

/** Whether all registered fields are there. */
export function isWhole(row: Row | null | undefined): row is Row {
  return row !== null && row !== undefined && FIELDS.every((field) => Object.hasOwn(row, field));
}

/** The number that names an issue. */
export function numberOf(target: string, number: unknown): number {
  if (
    target === ISSUE.name &&
    typeof number === 'number' &&
    Number.isSafeInteger(number) &&
    number > 0
  )
    return number;
  throw invalid('an issue is named by its number, for example { number: 7 }');
}
