import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { digestRecord, occurrenceId } from '../../src/crypto/digest.ts';
import { licenseRecord } from '../../src/protocol/license.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import type { Backend, OperationKind, OperationShape } from './backends/backend.ts';
import { ADAPTER, CONTINUATION, ISSUER, type Operation, type Site } from './commands.ts';

const LEDGER = 'ledger.db';
const KEYRING = 'keys.json';

function ledgerOf(backend: Backend, folder: string): string {
  return backend.ledger?.(folder) ?? join(folder, LEDGER);
}

/** One business database with its ledger, on disk, and the licenses that were signed for it. */
export class Installation implements AsyncDisposable {
  readonly backend: Backend;
  readonly folder: string;
  readonly site: Site;
  readonly operations: readonly Operation[];

  readonly #release: () => void;

  /** `release` gives back what this installation had for itself beside its folder. */
  constructor(backend: Backend, folder: string, original: Original, release: () => void) {
    const { issuerKey, operations } = original;
    this.backend = backend;
    this.folder = folder;
    this.operations = operations;
    this.#release = release;
    const ledger = ledgerOf(backend, folder);
    // Longer than any test runs: nothing here may depend on a lease that happens to run out.
    this.site = {
      backend: backend.name,
      folder,
      ledger,
      keyring: join(folder, KEYRING),
      issuerKey,
      leaseMs: 600_000,
    };
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
    const [found] = this.operationsOf([kind]);
    return found as Operation;
  }

  /** A separate operation for each kind named: the next one of that kind. */
  operationsOf(kinds: readonly OperationKind[]): readonly Operation[] {
    const left = [...this.operations];
    return kinds.map((kind) => {
      const at = left.findIndex((operation) => operation.kind === kind);
      const [found] = at === -1 ? [] : left.splice(at, 1);
      if (found === undefined) throw new Error(`too few operations of kind ${kind}`);
      return found;
    });
  }

  /**
   * A second machine on the same backend: a ledger of its own, the same keyring or one of its own.
   */
  secondSite(name: string, options: { readonly ownKeyring: boolean }): Site {
    const keyring = options.ownKeyring
      ? join(this.folder, `${name}.${KEYRING}`)
      : this.site.keyring;
    return { ...this.site, ledger: join(this.folder, `${name}.${LEDGER}`), keyring };
  }

  /** Keeps a copy of the ledger as it is now; no process may have it open. */
  saveLedger(name: string): string {
    const copy = join(this.folder, `${name}.${LEDGER}`);
    // Of two processes that close it at the same moment, each may leave its log to the other.
    if (existsSync(`${this.site.ledger}-wal`)) {
      const db = new DatabaseSync(this.site.ledger);
      db.exec('select count(*) from sqlite_schema');
      db.close();
    }
    if (existsSync(`${this.site.ledger}-wal`))
      throw new Error('the ledger is still open: a copy would lack its log');
    copyFileSync(this.site.ledger, copy);
    return copy;
  }

  /** One more installation in the same state; only where all of its data is in its folder. */
  copy(): Installation {
    if (this.backend.outside !== undefined) throw new Error('its data is outside its folder');
    const folder = mkdtempSync(`${this.folder}-copy-`);
    cpSync(this.folder, folder, { recursive: true, verbatimSymlinks: true });
    const { operations } = this;
    const { issuerKey } = this.site;
    return new Installation(this.backend, folder, { folder, issuerKey, operations }, () => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.folder, { recursive: true, force: true });
    this.#release();
  }
}

/** Licenses that were signed on the data of one folder. */
interface Original {
  readonly folder: string;
  readonly issuerKey: string;
  readonly operations: readonly Operation[];
}

/**
 * An installation in which nothing has happened yet, to be copied for every case: signing once keeps a case
 * short. Where the data is outside the folder, a copy takes an original for itself, and there are
 * as many as cases at once.
 */
export class Template implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), 'effectmatch-crash-'));
  readonly backend: Backend;
  readonly #shapes: readonly OperationShape[];
  readonly #all: Original[] = [];
  readonly #free: Original[] = [];
  #folders = 0;

  constructor(backend: Backend, kinds: readonly OperationKind[]) {
    this.backend = backend;
    this.#shapes = kinds.map((kind, index) => ({ n: index + 1, kind }));
  }

  /** Makes an original ahead of need. */
  async fill(): Promise<void> {
    const folder = this.#nextFolder('original');
    mkdirSync(folder);
    const original = await signAll(this.backend, folder, this.#shapes).catch(
      async (error: unknown) => {
        await this.backend.outside?.remove(folder);
        throw error;
      },
    );
    this.#all.push(original);
    this.#free.push(original);
  }

  async copy(): Promise<Installation> {
    const { outside } = this.backend;
    if (this.#free.length === 0) await this.fill();
    const original = outside === undefined ? this.#free[0] : this.#free.pop();
    if (original === undefined) return this.copy();
    await outside?.reset(original.folder, this.#shapes);
    const folder = this.#nextFolder('installation');
    cpSync(original.folder, folder, { recursive: true, verbatimSymlinks: true });
    return new Installation(this.backend, folder, original, () => {
      if (outside !== undefined) this.#free.push(original);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { folder } of this.#all) await this.backend.outside?.remove(folder);
    rmSync(this.#root, { recursive: true, force: true });
  }

  #nextFolder(name: string): string {
    this.#folders += 1;
    return join(this.#root, `${name}-${this.#folders}`);
  }
}

/** A template with one original. */
export async function createTemplate(
  backend: Backend,
  kinds: readonly OperationKind[],
): Promise<Template> {
  const template = new Template(backend, kinds);
  try {
    await template.fill();
    return template;
  } catch (error) {
    await template[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Lays down a backend and has every operation approved: prepared by the runtime, signed by the
 * approver.
 */
async function signAll(
  backend: Backend,
  folder: string,
  shapes: readonly OperationShape[],
): Promise<Original> {
  await backend.create(folder, shapes);
  const key = generateApprover(ISSUER);
  const { sign } = approver(key);
  await using runtime = await createRuntime({
    store: ledgerOf(backend, folder),
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
  return { folder, issuerKey: key.publicKey, operations };
}

/**
 * The task names the operation in every record about it, which is how the checker finds them again.
 */
export function taskOf({ n }: Pick<OperationShape, 'n'>): string {
  return `op-${n}`;
}
