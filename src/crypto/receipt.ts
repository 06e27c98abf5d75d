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

/** Signs what a deployment recorded, with the key of its current generation. */
export interface Signer {
  /** A terminal as it is stored, and the number of the journal row that holds it. */
  receipt(terminal: Terminal, position: number): Envelope;
  checkpoint(checkpoint: Checkpoint): Envelope;
  /** A shadow as it is stored, with its row. It says that it is not a verdict. */
  shadow(shadow: Shadow, position: number): Envelope;
  /** The completion of dependent work as it is stored, with its row. */
  completion(completion: Acknowledgement, position: number): Envelope;
}

/**
 * The signer of a deployment. It signs only what it is given: that it is recorded is for the caller
 * to see to.
 */
export function createSigner(keyring: Keyring): Signer {
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
 * Verifies a receipt or a signed checkpoint, as an object or as JSON text, with nothing but public
 * keys: no store, no keyring, no network. Throws `ERR_EM_SIGNATURE_INVALID` when none of the keys
 * vouches for it, and `ERR_EM_RECORD_INVALID` when what they vouch for contradicts itself.
 */
export function verifyReceipt(
  publicKeys: readonly (string | ReceiptKey)[],
  envelope: unknown,
): Verified {
  const keys = publicKeys.map((key) => (typeof key === 'string' ? parseReceiptKey(key) : key));
  const { text, keyid } = openEnvelope(keys, envelope);
  return readStatement(text, keyid);
}
