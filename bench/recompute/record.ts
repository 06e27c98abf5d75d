// Reads raw records by field name. The recomputation knows nothing else about them.
import { createPublicKey, verify } from 'node:crypto';

/** One raw record, as read from its file. */
export interface ReadRecord {
  readonly run: string;
  readonly [fact: string]: unknown;
}

/** Figures by name. */
export type Figures = ReadonlyMap<string, number>;

/** Counts by name. A name that is mentioned but never counted has the count 0. */
export class FigureTally {
  readonly #counts = new Map<string, number>();

  /** Adds one to this name if `holds`. Creates the name in any case. */
  count(name: string, holds: boolean): void {
    this.add(name, Number(holds));
  }

  add(name: string, value: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + value);
  }

  get figures(): Figures {
    return this.#counts;
  }
}

/** Splits a run's name into its parts. */
export function partsOf({ run }: ReadRecord): readonly string[] {
  return run.split('|').map((part) => part.trim());
}

export function textIn(record: ReadRecord, field: string): string {
  return String(record[field] ?? '');
}

export function numberIn(record: ReadRecord, field: string): number {
  return Number(record[field]);
}

export function listIn<T>(record: ReadRecord, field: string): readonly T[] {
  const found = record[field];
  return Array.isArray(found) ? found : [];
}

interface States {
  readonly initial: string;
  readonly approved: string;
  readonly durable: string;
}

/**
 * Compares the digest of the durable state with those of the approved and the initial state. What
 * was decided is what the signed receipt says, if the run kept one.
 */
export function judgeStates(record: ReadRecord) {
  const { initial, approved, durable } = record.states as States;
  const receipt = receiptIn(record);
  const committed = receipt === undefined ? record.committed === true : receipt === 'committed';
  const isRight = durable === approved;
  const isInitial = durable === initial;
  return {
    isRight,
    /** An unapproved state is durable or was reported as committed. */
    isWrong: !isRight && (committed || !isInitial),
    isSaved: isRight && committed,
    isKept: !committed && isInitial,
    isSpoilt: (!committed && !isInitial) || receipt === 'forged',
  };
}

interface KeptReceipt {
  readonly receiptKeys: readonly string[];
  readonly receipt: {
    readonly payloadType: string;
    readonly payload: string;
    readonly signatures: readonly { readonly sig: string }[];
  };
}

/** The verdict in the kept receipt; `forged` if no key signed it, undefined if none was kept. */
export function receiptIn(record: ReadRecord): string | undefined {
  const { receipt, receiptKeys = [] } = keptIn<KeptReceipt>(record);
  if (receipt === undefined) return undefined;
  const payload = Buffer.from(receipt.payload, 'base64');
  const { payloadType: type } = receipt;
  const head = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `;
  const signed = Buffer.concat([Buffer.from(head), payload]);
  const isSigned = receiptKeys.some((text) => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: text.replace('ed25519:', '') };
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return receipt.signatures.some(({ sig }) =>
      verify(null, signed, key, Buffer.from(sig, 'base64')),
    );
  });
  if (!isSigned) return 'forged';
  const { predicate } = JSON.parse(payload.toString()) as {
    readonly predicate: { readonly terminal: { readonly kind: string } };
  };
  return predicate.terminal.kind;
}

interface KeptVerdict {
  readonly kind: string;
  readonly reason?: string;
}

/** The verdicts kept with the run, in order. */
export function verdictsIn(record: ReadRecord): readonly KeptVerdict[] {
  const kept = listIn<{ readonly verdict?: KeptVerdict }>(record, 'kept');
  return kept.flatMap(({ verdict }) => (typeof verdict === 'object' ? verdict : []));
}

/** All facts of the run together. Of several with one name the last one counts. */
export function keptIn<T extends object>(record: ReadRecord): Partial<T> {
  return Object.assign({}, ...listIn<T>(record, 'kept'));
}

/** Compares the digest of what was durable in the end with those kept beside it. */
export function statesIn(record: ReadRecord) {
  const { states } = keptIn<{ readonly states: Partial<States & { takenOver: string }> }>(record);
  return {
    isApproved: states !== undefined && states.durable === states.approved,
    isInitial: states !== undefined && states.durable === states.initial,
    /** It contains another program's change, and nothing else. */
    isTakenOver: states !== undefined && states.durable === states.takenOver,
  };
}
