import type { Checkpoint } from '../protocol/checkpoint.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import { type Statement, statementRecord } from '../protocol/receipt.ts';
import type { Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type Envelope, openEnvelope, signEnvelope } from './dsse.ts';
import type { Keyring } from './keyring.ts';
import { parseReceiptKey, type ReceiptKey, signingKey } from './receipt-key.ts';
import {
  readStatement,
  stateCheckpoint,
  stateCompletion,
  stateShadow,
  stateTerminal,
  type Verified,
} from './statement.ts';

export type { Verified } from './statement.ts';

/** Signs a deployment's records with the key of its current generation. */
export interface ReceiptSigner {
  /** A stored terminal, and the number of the journal row that holds it. */
  receipt(terminal: Terminal, position: number): Envelope;
  checkpoint(checkpoint: Checkpoint): Envelope;
  /** A stored shadow and its row. A shadow is not a verdict. */
  shadow(shadow: Shadow, position: number): Envelope;
  /** The stored completion of dependent work, and its row. */
  completion(completion: Acknowledgement, position: number): Envelope;
}

/** The signer of a deployment. It does not check that a record is stored; the caller must. */
export function createSigner(keyring: Keyring): ReceiptSigner {
  const key = signingKey(keyring);
  const seal = (statement: Statement) => signEnvelope(key, statementRecord.text(statement));
  return {
    receipt: (terminal, position) => seal(stateTerminal(terminal, position)),
    checkpoint: (checkpoint) => seal(stateCheckpoint(checkpoint)),
    shadow: (shadow, position) => seal(stateShadow(shadow, position)),
    completion: (completion, position) => seal(stateCompletion(completion, position)),
  };
}

/**
 * Verifies any envelope that a deployment signed, as an object or as JSON text. Needs only public
 * keys: no store, no keyring, no network. Throws `ERR_EM_SIGNATURE_INVALID` if none of the keys
 * signed it, and `ERR_EM_RECORD_INVALID` if the signed statement contradicts itself.
 */
export function verifyReceipt(
  publicKeys: readonly (string | ReceiptKey)[],
  envelope: unknown,
): Verified {
  const keys = publicKeys.map((key) => (typeof key === 'string' ? parseReceiptKey(key) : key));
  const { text, keyid } = openEnvelope(keys, envelope);
  return readStatement(text, keyid);
}
