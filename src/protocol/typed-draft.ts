import {
  absent,
  type Change,
  type Constraint,
  insert,
  type Plain,
  read,
  remove,
  row,
  update,
} from './draft.ts';
import type { ApprovedEffect, Requirement, StateRead } from './effect.ts';

/**
 * The tables of one adapter by name, with the types of their key and other columns, as `effectmatch
 * types` writes them.
 */
export type TableTypes = {
  readonly [table: string]: {
    readonly key: { readonly [column: string]: Plain };
    readonly columns: { readonly [column: string]: Plain };
  };
};

type Stated<C> = { readonly [K in keyof C]: C[K] | Constraint };
type Changed<C> = {
  readonly [K in keyof C]?:
    | C[K]
    | Constraint
    | Change
    | readonly [C[K] | Constraint, C[K] | Constraint];
};

/**
 * The functions that state effects, typed for known tables: a wrong table, column or type is a
 * compile error.
 */
export interface TypedEffects<T extends TableTypes> {
  insert<N extends keyof T & string>(
    target: N,
    row: Partial<Stated<T[N]['key']>> & Partial<Stated<T[N]['columns']>>,
  ): ApprovedEffect;
  update<N extends keyof T & string>(
    target: N,
    key: Stated<T[N]['key']>,
    changes: Changed<T[N]['columns']>,
  ): ApprovedEffect;
  remove<N extends keyof T & string>(
    target: N,
    key: Stated<T[N]['key']>,
    before?: Partial<Stated<T[N]['columns']>>,
  ): ApprovedEffect;
  row<N extends keyof T & string>(
    target: N,
    key: T[N]['key'],
    columns: Partial<T[N]['columns']>,
  ): Requirement;
  absent<N extends keyof T & string>(target: N, key: T[N]['key']): Requirement;
  read<N extends keyof T & string>(
    target: N,
    key: T[N]['key'],
    columns?: readonly (keyof T[N]['columns'] & string)[],
  ): StateRead;
}

/** The untyped functions with the types of these tables. Effects are still checked at run time. */
export function effectsOf<T extends TableTypes>(): TypedEffects<T> {
  return { insert, update, remove, row, absent, read } as unknown as TypedEffects<T>;
}
