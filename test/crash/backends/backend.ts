import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import type { Step } from '../../../src/contract/steps.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';

/**
 * What an operation does to the backend. `append` leaves the same outcome however often it runs, so
 * that only the marker stands between one effect and two; `derive` has an approved consequence
 * inside the backend; `bulk` takes long to commit; `surprise` does more than was approved;
 * `failing` fails half way.
 */
export const OPERATION_KINDS = ['append', 'derive', 'bulk', 'surprise', 'failing'] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/**
 * The operations of an installation, in the order in which a stream of them runs: mostly honest ones, every
 * kind among them.
 */
export const WORLD_KINDS: readonly OperationKind[] = [
  'append',
  'derive',
  'bulk',
  'surprise',
  'append',
  'failing',
  'bulk',
  'append',
  'derive',
  'surprise',
  'failing',
  'append',
];

/**
 * Whether the outcome of such an operation is the approved one, so that `committed` is what an
 * honest run says.
 */
export function isApproved(kind: OperationKind): boolean {
  return kind === 'append' || kind === 'derive' || kind === 'bulk';
}

/** One operation of an installation: its number makes its rows its own. */
export interface OperationShape {
  readonly n: number;
  readonly kind: OperationKind;
}

/** A marker as it lies in the backend, read without the adapter. */
export interface StoredMarker {
  readonly occurrence: string;
  readonly disposition: string;
  readonly execution: string;
}

/**
 * Data that lives on a server: a copy of the folder still means the same data, so it serves one
 * installation at a time.
 */
export interface Outside {
  /** Ends whoever is still connected and restores the data as `create` laid it down. */
  reset(folder: string, operations: readonly OperationShape[]): Promise<void>;
  remove(folder: string): Promise<void>;
}

/**
 * Everything about one adapter that the crash tests need; a further adapter is one more file of
 * this kind.
 */
export interface Backend {
  readonly name: string;
  /**
   * Steps at which the process holds something that keeps a recovering one from deciding: it must
   * wait, not guess.
   */
  readonly blocksAt: readonly Step[];
  /** Lays down the business data for these operations in an empty folder. */
  create(folder: string, operations: readonly OperationShape[]): Promise<void>;
  /**
   * How data outside the folder is put back and removed; absent where a copy of the folder is a
   * installation of its own.
   */
  readonly outside?: Outside;
  /** The address of the ledger, where it is not a file in the folder. */
  readonly ledger?: (folder: string) => string;
  factory(folder: string): AdapterFactory;
  /** What is approved for the operation, and the action that is run under it. */
  plan(operation: OperationShape): {
    readonly effects: PrepareRequest['effects'];
    readonly action: unknown;
  };
  /** Everything durable, one line per row, read by code that shares nothing with the adapter. */
  readState(folder: string): Promise<readonly string[]>;
  /**
   * The lines that must be durable when exactly these operations have committed, worked out by
   * hand.
   */
  expectState(
    operations: readonly OperationShape[],
    committed: ReadonlySet<number>,
  ): readonly string[];
  readMarkers(folder: string): Promise<readonly StoredMarker[]>;
  /** Damages one durable row of a committed operation, for the test of the checker itself. */
  falsify(folder: string, operation: OperationShape): Promise<void>;
  /** Removes a marker, for the same test. */
  loseMarker(folder: string, occurrence: string): Promise<void>;
}
