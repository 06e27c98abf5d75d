import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { digestRecord, occurrenceId } from '../../src/crypto/digest.ts';
import { licenseRecord } from '../../src/protocol/license.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import type { Backend, OperationKind, OperationShape } from './backends/backend.ts';
import { ADAPTER, CONTINUATION, ISSUER, type Operation, type Site } from './commands.ts';

const LEDGER = 'ledger.db';
const KEYRING = 'keys.json';

/** One business database with its ledger, on disk, and the licenses that were signed for it. */
export class World implements Disposable {
  readonly backend: Backend;
  readonly folder: string;
  readonly site: Site;
  readonly operations: readonly Operation[];

  constructor(backend: Backend, folder: string, issuerKey: string, operations: readonly Operation[]) {
    this.backend = backend;
    this.folder = folder;
    this.operations = operations;
    const ledger = join(folder, LEDGER);
    // Longer than any test runs: nothing here may depend on a lease that happens to run out.
    this.site = { backend: backend.name, folder, ledger, keyring: join(folder, KEYRING), issuerKey, leaseMs: 600_000 };
  }

  /** The dependent work writes here. */
  get releases(): string {
    return join(this.folder, 'releases.log');
  }

  /** Processes that stop or die by their own hand say here at which step. */
  get deaths(): string {
    return join(this.folder, 'deaths.log');
  }

  /** The first operation of a kind. */
  operationOf(kind: OperationKind): Operation {
    const found = this.operations.find((operation) => operation.kind === kind);
    if (found === undefined) throw new Error(`the world has no operation of kind ${kind}`);
    return found;
  }

  /** A second machine on the same backend: a ledger of its own, the same keyring or one of its own. */
  secondSite(name: string, options: { readonly ownKeyring: boolean }): Site {
    const keyring = options.ownKeyring ? join(this.folder, `${name}.${KEYRING}`) : this.site.keyring;
    return { ...this.site, ledger: join(this.folder, `${name}.${LEDGER}`), keyring };
  }

  /** Keeps a copy of the ledger as it is now; no process may have it open. */
  saveLedger(name: string): string {
    const copy = join(this.folder, `${name}.${LEDGER}`);
    if (existsSync(`${this.site.ledger}-wal`)) throw new Error('the ledger is still open: a copy would lack its log');
    copyFileSync(this.site.ledger, copy);
    return copy;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A world in which nothing has happened yet, to be copied for every case: signing once keeps a case short. */
export class Template implements Disposable {
  readonly #root: string;
  readonly #backend: Backend;
  readonly #issuerKey: string;
  readonly #operations: readonly Operation[];
  #copies = 0;

  constructor(root: string, backend: Backend, issuerKey: string, operations: readonly Operation[]) {
    this.#root = root;
    this.#backend = backend;
    this.#issuerKey = issuerKey;
    this.#operations = operations;
  }

  copy(): World {
    this.#copies += 1;
    const folder = join(this.#root, `world-${this.#copies}`);
    cpSync(join(this.#root, 'template'), folder, { recursive: true, verbatimSymlinks: true });
    return new World(this.#backend, folder, this.#issuerKey, this.#operations);
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}

/** Lays down a backend and has every operation approved: prepared by the runtime, signed by the approver. */
export async function createTemplate(backend: Backend, kinds: readonly OperationKind[]): Promise<Template> {
  const root = mkdtempSync(join(tmpdir(), 'effectmatch-crash-'));
  try {
    return await fillTemplate(root, backend, kinds);
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
}

async function fillTemplate(root: string, backend: Backend, kinds: readonly OperationKind[]): Promise<Template> {
  const folder = join(root, 'template');
  mkdirSync(folder);
  const shapes = kinds.map((kind, index) => ({ n: index + 1, kind }));
  backend.create(folder, shapes);
  const key = generateApprover(ISSUER);
  const { sign } = approver(key);
  await using runtime = await createRuntime({
    store: join(folder, LEDGER),
    keyring: join(folder, KEYRING),
    issuers: { [ISSUER]: { key: key.publicKey, may: [ADAPTER] } },
    adapters: { [ADAPTER]: backend.factory(folder) },
  });
  const operations: Operation[] = [];
  for (const shape of shapes) {
    const { effects, action } = backend.plan(shape);
    const task = taskOf(shape);
    const proposal = await runtime.prepare({
      adapter: ADAPTER,
      task,
      planRevision: 1,
      effects,
      continuations: [CONTINUATION],
    });
    const license = sign(proposal, { expiresIn: '7d' });
    const lineage = digestRecord(licenseRecord, license.license);
    const { issuer, nonce } = license.license;
    const occurrence = occurrenceId({ issuer, nonce, license: lineage, index: 0 });
    operations.push({ ...shape, license, action, lineage, occurrence });
  }
  return new Template(root, backend, key.publicKey, operations);
}

/** The task names the operation in every record about it, which is how the checker finds them again. */
export function taskOf({ n }: Pick<OperationShape, 'n'>): string {
  return `op-${n}`;
}
