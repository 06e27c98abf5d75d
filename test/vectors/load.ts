import { readdirSync, readFileSync } from 'node:fs';
import type { Envelope } from '../../src/crypto/dsse.ts';
import { Keyring } from '../../src/crypto/keyring.ts';
import type { RecordKind } from '../../src/protocol/record.ts';

/** One golden vector of a record kind. */
export interface Vector {
  readonly name: string;
  readonly kind: string;
  readonly version: number;
  readonly record: object;
  readonly text: string;
  readonly digest: string;
  readonly seal: { readonly key: string; readonly mac: string };
  readonly signature?: string;
}

const folder = new URL('./', import.meta.url);
const readJson = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8'));

export const keys = readJson('keys.json') as {
  readonly generations: Readonly<Record<string, string>>;
  readonly approverSeed: string;
};

export const derivations = readJson('derivations.json') as {
  readonly approverKey: { readonly publicKey: string; readonly id: string };
  readonly occurrences: readonly { readonly source: never; readonly id: string }[];
  readonly values: readonly {
    readonly key: string;
    readonly target: string;
    readonly column: string;
    readonly value: never;
    readonly digest: string;
  }[];
};

/** The ring of the vectors; `current` comes first and seals. */
export function vectorKeyring(current: string): Keyring {
  const others = Object.keys(keys.generations).filter((id) => id !== current);
  const ids = [current, ...others];
  return new Keyring(ids.map((id) => ({ id, secret: Buffer.from(keys.generations[id] ?? '', 'hex') })));
}

/** One golden vector of a signed envelope: the record it is about, who signs, and what comes out. */
export interface EnvelopeVector {
  readonly name: string;
  readonly key: string;
  readonly record: object;
  readonly position?: number;
  readonly publicKey: string;
  readonly envelope: Envelope;
}

export const envelopes = readJson('envelopes.json') as readonly EnvelopeVector[];

/** One golden vector of a passkey: its public half, and its assertion over a license. */
export interface PasskeyVector {
  readonly name: string;
  readonly publicKey: string;
  readonly license: object;
  readonly signature: string;
}

export const passkeys = readJson('passkeys.json') as readonly PasskeyVector[];

/** One golden vector of a passkey's assertion over a decline or an operator's decision. */
export interface PasskeyDecisionVector extends Pick<PasskeyVector, 'name' | 'publicKey' | 'signature'> {
  readonly decline?: object;
  readonly resolution?: object;
}

export const passkeyDecisions = readJson(
  'passkey-decisions.json',
) as readonly PasskeyDecisionVector[];

/** Files of another form than a list of records. */
const OTHERS = [
  ...['keys.json', 'derivations.json', 'envelopes.json'],
  ...['passkeys.json', 'passkey-decisions.json'],
];

/** Every vector, in the order of the files. */
export const vectors: readonly Vector[] = readdirSync(folder)
  .filter((name) => name.endsWith('.json') && !OTHERS.includes(name))
  .sort()
  .flatMap((name) => readJson(name) as Vector[]);

/** Every record kind that a module of the protocol exports: all modules that define one are loaded and looked at. */
export async function recordKinds(): Promise<ReadonlyMap<string, RecordKind<object>>> {
  const protocol = new URL('../../src/protocol/', import.meta.url);
  const kinds = new Map<string, RecordKind<object>>();
  for (const name of readdirSync(protocol)) {
    if (!readFileSync(new URL(name, protocol), 'utf8').includes(' defineRecord(')) continue;
    const module = (await import(new URL(name, protocol).href)) as Record<string, unknown>;
    for (const value of Object.values(module)) {
      if (isRecordKind(value)) kinds.set(value.kind, value);
    }
  }
  return kinds;
}

function isRecordKind(value: unknown): value is RecordKind<object> {
  return typeof value === 'object' && value !== null && 'parseText' in value && 'domain' in value && 'kind' in value;
}
