import { hash } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import {
  CHECKPOINT_TYPE,
  COMPLETION_TYPE,
  checkpointName,
  RECEIPT_TYPE,
  type Receipt,
  SHADOW_TYPE,
  STATEMENT_TYPE,
  type Statement,
  statementRecord,
} from '../protocol/receipt.ts';
import type { Digest } from '../protocol/record.ts';
import { type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { findUnassured, type Terminal, terminalRecord } from '../protocol/terminal.ts';
import { digestText } from './digest.ts';

/** The content of a verified envelope. `keyid` names the key that signed it. */
export type Verified =
  | { readonly kind: 'receipt'; readonly keyid: string; readonly receipt: Receipt }
  | { readonly kind: 'checkpoint'; readonly keyid: string; readonly checkpoint: Checkpoint }
  | {
      readonly kind: 'shadow';
      readonly keyid: string;
      readonly shadow: Shadow;
      readonly position: number;
    }
  | {
      readonly kind: 'completion';
      readonly keyid: string;
      readonly completion: Acknowledgement;
      readonly position: number;
    };

/**
 * Reads a statement whose signature was verified. Throws `ERR_EM_RECORD_INVALID` if the statement
 * contradicts itself.
 */
export function readStatement(text: string, keyid: string): Verified {
  const statement = statementRecord.parseText(text);
  switch (statement.predicateType) {
    case RECEIPT_TYPE: {
      const { terminal, position } = statement.predicate;
      assertSame(text, stateTerminal(terminal, position));
      assertSound(terminal);
      return { kind: 'receipt', keyid, receipt: statement.predicate };
    }
    case CHECKPOINT_TYPE:
      assertSame(text, stateCheckpoint(statement.predicate));
      return { kind: 'checkpoint', keyid, checkpoint: statement.predicate };
    case SHADOW_TYPE: {
      const { shadow, position } = statement.predicate;
      assertSame(text, stateShadow(shadow, position));
      return { kind: 'shadow', keyid, shadow, position };
    }
    case COMPLETION_TYPE: {
      const { completion, position } = statement.predicate;
      assertSame(text, stateCompletion(completion, position));
      if (completion.state === 'completed')
        return { kind: 'completion', keyid, completion, position };
      throw new EffectMatchError('ERR_EM_RECORD_INVALID', 'receipt: the work has not completed');
    }
  }
}

/** The statement about a terminal and the journal row that holds it. */
export function stateTerminal(terminal: Terminal, position: number): Statement {
  const { occurrence, lineage } = terminal;
  const text = terminalRecord.text(terminal);
  const digest = digestText(terminalRecord.domain, text);
  const predicate = { version: 1, terminal, digest, lineage, position } as const;
  return { ...aboutText(occurrence, text), predicateType: RECEIPT_TYPE, predicate };
}

/** The statement about a checkpoint. */
export function stateCheckpoint(checkpoint: Checkpoint): Statement {
  const about = aboutText(checkpointName(checkpoint.throughSeq), checkpointRecord.text(checkpoint));
  return { ...about, predicateType: CHECKPOINT_TYPE, predicate: checkpoint };
}

/** The statement about a shadow and the journal row that holds it. */
export function stateShadow(shadow: Shadow, position: number): Statement {
  const about = aboutText(shadow.occurrence, shadowRecord.text(shadow));
  return { ...about, predicateType: SHADOW_TYPE, predicate: { shadow, position } };
}

/** The statement about completed work and the journal row that holds it. */
export function stateCompletion(completion: Acknowledgement, position: number): Statement {
  const about = aboutText(completion.occurrence, acknowledgementRecord.text(completion));
  return { ...about, predicateType: COMPLETION_TYPE, predicate: { completion, position } };
}

/** The digest has no domain label, because tools that know only in-toto compute the plain one. */
function aboutText<Name extends string>(name: Name, text: string) {
  const sha256 = hash('sha256', text, 'hex') as Digest;
  const _type: typeof STATEMENT_TYPE = STATEMENT_TYPE;
  return { _type, subject: [{ name, digest: { sha256 } }] };
}

/** The rest of a statement follows from its record, so rebuild the whole statement and compare. */
function assertSame(text: string, again: Statement): void {
  if (statementRecord.text(again) === text) return;
  throw new EffectMatchError(
    'ERR_EM_RECORD_INVALID',
    'statement: its subject, digest or lineage is not that of the record it carries',
  );
}

function assertSound(terminal: Terminal): void {
  const broken = findUnassured(terminal);
  if (broken === undefined) return;
  throw new EffectMatchError(
    'ERR_EM_RECORD_INVALID',
    `receipt: the terminal contradicts itself: ${broken}`,
  );
}
