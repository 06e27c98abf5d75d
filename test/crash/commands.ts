import type { JournalVerdict } from '../../src/contract/ledgers.ts';
import type { Step } from '../../src/contract/steps.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { Ensured } from '../../src/runtime/ensure.ts';
import type { Recovered } from '../../src/runtime/recover.ts';
import type { OperationShape } from './backends/backend.ts';

/**
 * Where a process finds backend, ledger and keys. Two machines are two of these with the same
 * backend folder.
 */
export interface Site {
  readonly backend: string;
  readonly folder: string;
  readonly ledger: string;
  readonly keyring: string;
  readonly issuerKey: string;
  readonly leaseMs: number;
  /** How long a decision of a ledger in PostgreSQL waits for others; as long as usual if absent. */
  readonly patienceMs?: number;
}

/** An operation with the license that was signed for it. */
export interface Operation extends OperationShape {
  readonly license: SignedLicense;
  readonly action: unknown;
  readonly lineage: string;
  readonly occurrence: string;
}

/** Where a process shall stop or die by its own hand. `log` receives the step's name first. */
export interface Arming {
  readonly step: Step;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
  readonly log: string;
  /** How often the step is passed before that; never unless said. */
  readonly passes?: number;
}

/** What a process does in a task: its calls, one after another, and how it ends. */
export interface TaskScript {
  readonly calls: readonly ('action' | 'failing')[];
  /** `wait` does nothing more, so that the deadline ends it. */
  readonly end: 'finish' | 'discard' | 'wait';
}

/** What became of a request for release. */
export type Released =
  | { readonly kind: 'released' }
  | { readonly kind: 'halted'; readonly why: string };

/** What the parent may ask of a child, and what the child answers. */
export interface Commands {
  readonly open: { readonly asks: { readonly site: Site }; readonly answers: null };
  readonly arm: { readonly asks: { readonly arming: Arming | null }; readonly answers: null };
  readonly execute: {
    readonly asks: { readonly operation: Operation };
    readonly answers: Terminal;
  };
  /** The same in a task of three calls: one that fails, the action, one that fails. */
  readonly task: { readonly asks: { readonly operation: Operation }; readonly answers: Terminal };
  /** The same as a script says. */
  readonly play: {
    readonly asks: { readonly operation: Operation; readonly script: TaskScript };
    readonly answers: Terminal;
  };
  readonly ensure: {
    readonly asks: { readonly operation: Operation };
    readonly answers: Ensured;
  };
  readonly stream: {
    readonly asks: { readonly operations: readonly Operation[]; readonly releases: string };
    readonly answers: number;
  };
  readonly load: { readonly asks: { readonly operation: Operation }; readonly answers: null };
  readonly fire: { readonly asks: Record<never, never>; readonly answers: Terminal };
  readonly recover: { readonly asks: Record<never, never>; readonly answers: readonly Recovered[] };
  readonly release: {
    readonly asks: { readonly operation: Operation; readonly releases: string };
    readonly answers: Released;
  };
  /** The verdict about the operation as dependent work would read it; null when there is none. */
  readonly terminal: {
    readonly asks: { readonly operation: Operation };
    readonly answers: Terminal | null;
  };
  readonly verify: { readonly asks: Record<never, never>; readonly answers: JournalVerdict };
  readonly steps: { readonly asks: Record<never, never>; readonly answers: readonly Step[] };
  readonly close: { readonly asks: Record<never, never>; readonly answers: null };
}

export type CommandName = keyof Commands;

/** One request to a child. */
export type Request = {
  [Name in CommandName]: { readonly id: number; readonly name: Name } & Commands[Name]['asks'];
}[CommandName];

/** A child's answer, or the fault that it met. */
export type Reply =
  /** An operation of a stream has ended; the next one follows at once. */
  | { readonly id: number; readonly kind: 'progress' }
  | { readonly id: number; readonly kind: 'done'; readonly value: unknown }
  | {
      readonly id: number;
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
    };

/** The continuation that every license of the crash tests registers. */
export const CONTINUATION = 'follow-up';
export const ISSUER = 'crash-test';
export const ADAPTER = 'business';
