// An invoice in a folder, which is paid under a license, and whatever goes wrong meanwhile.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { files } from '../../../src/adapters/files/index.ts';
import type { AdapterFactory, PromotableAdapter } from '../../../src/contract/adapter.ts';
import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import { update } from '../../../src/protocol/draft.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import { overlayAdapter, overlayStages } from '../../../test/world/overlay.ts';
import { keepState, keepVerdict } from '../../facts.ts';
import { temporaryFolder } from '../../temporary.ts';

const PATH = 'invoice-4711';
const OWNER = generateApprover('owner');
const PAY = { operations: [{ write: { path: PATH, text: 'paid\n' } }] };

/** How one process differs from what it should be. */
export interface ProcessChanges {
  readonly adapter?: (factory: AdapterFactory) => AdapterFactory;
  readonly ledger?: (factory: LedgersFactory) => LedgersFactory;
  readonly internals?: Internals;
}

/** One invoice, and processes that work on it. */
export interface InvoiceDesk extends AsyncDisposable {
  open(changes?: ProcessChanges): Promise<Runtime>;
  approve(runtime: Runtime): Promise<SignedLicense>;
  /** Pays; a process that is stopped on purpose gives no verdict. */
  pay(runtime: Runtime, license: SignedLicense): Promise<void>;
  /** What the journal says, and what the file says, both read afresh. */
  read(license: SignedLicense): Promise<{ readonly verdict: string; readonly status: string }>;
}

export async function openInvoiceDesk(): Promise<InvoiceDesk> {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(temporaryFolder());
  const root = join(folder, 'invoices');
  mkdirSync(root, { mode: 0o755 });
  writeFileSync(join(root, PATH), 'pending\n', { mode: 0o644 });
  const opened = stack.move();
  const open = async ({ adapter, ledger, internals }: ProcessChanges = {}) => {
    const factory = files({ root, adopt: true }) as AdapterFactory;
    const store = sqliteLedgers(join(folder, 'ledger.db'));
    const config = {
      store: ledger === undefined ? store : ledger(store),
      keyring: join(folder, 'keys.json'),
      issuers: { owner: { key: OWNER.publicKey, may: ['invoices'] } },
      adapters: { invoices: adapter === undefined ? factory : adapter(factory) },
      recoverAtStart: false,
    };
    return opened.use(await createRuntime(config, internals));
  };
  return {
    open,
    async approve(runtime) {
      const effects = [update('file', { path: PATH }, { content: ['pending\n', 'paid\n'] })];
      const request = { adapter: 'invoices', task: 'invoice 4711', planRevision: 1, effects };
      return approver(OWNER).sign(await runtime.prepare(request), { expiresIn: '10m' });
    },
    async pay(runtime, license) {
      await runtime.execute(license, PAY).then(keepVerdict, () => {});
    },
    async read(license) {
      await using reader = await open();
      const [{ occurrence }] = lineagesOf(license);
      const terminal = await reader.terminal(occurrence);
      if (terminal !== undefined) keepVerdict(terminal);
      const status = keepState('file', readFileSync(join(root, PATH), 'utf8').trim());
      return { verdict: terminal?.kind ?? 'none', status };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Something happens after the final gate, while the candidate is about to be promoted. */
export function beforePromotion(meanwhile: () => Promise<unknown>) {
  return (factory: AdapterFactory): AdapterFactory =>
    overlayAdapter(factory, (adapter) =>
      overlayStages(adapter as PromotableAdapter, (stage) => ({
        async promote(permit) {
          await meanwhile();
          return await stage.promote(permit);
        },
      })),
    );
}
