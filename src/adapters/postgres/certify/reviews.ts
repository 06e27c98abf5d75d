import { hash } from 'node:crypto';
import type { FunctionRow } from './catalog.ts';
import type { BoundaryFacts } from './facts.ts';

/** The digest that a review is bound to. It covers everything that decides what a function does. */
export function digestFunction(row: FunctionRow): string {
  const { kind, language, owner, definer, config, source, sqlBody, library, defaults } = row;
  const decisive = [language, owner, definer, config, source, sqlBody, library];
  if (defaults !== null) decisive.push(defaults);
  // An aggregate has no text of its own: its definition names what it is made of.
  if (kind === 'a') decisive.push(row.definition);
  return hash('sha256', JSON.stringify(decisive), 'hex').slice(0, 32);
}

/** The person who reviewed this function as it is now. */
export function reviewerOf(row: FunctionRow, { reviews = [] }: BoundaryFacts): string | undefined {
  const digest = digestFunction(row);
  return reviews.find((known) => known.function === row.object && known.digest === digest)?.by;
}
