// Files: the checked candidate says paid. Another one, which says cancelled, replaces it.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { files } from '../../../src/adapters/files/index.ts';
import type {
  AdapterFactory,
  CandidateFacts,
  PromotableAdapter,
  Stage,
} from '../../../src/contract/adapter.ts';
import type { ConsumedPermit } from '../../../src/contract/proof.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { update } from '../../../src/protocol/draft.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { overlay } from '../../../test/world/world.ts';
import { compareStates, keepVerdict } from '../../facts.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { Ending, Pair } from './pair.ts';

const PATH = 'invoice-4711';
const OWNER = generateApprover('owner');
const write = (status: string) => ({
  operations: [{ write: { path: PATH, text: `${status}\n` } }],
});

interface Swap {
  /**
   * Whether another candidate of the same occurrence replaces the observed one.
   */
  readonly replaces: boolean;
  /**
   * Whether the gate and the adapter still see the observed candidate after it was replaced.
   */
  readonly removed: boolean;
  /** If given, keeps the first permit here and presents it for every later candidate. */
  readonly kept?: ConsumedPermit[];
}

function swapping(factory: AdapterFactory, swap: Swap): AdapterFactory {
  const { replaces } = swap;
  return {
    async open(context) {
      const adapter = (await factory.open(context)) as PromotableAdapter;
      const changes: Partial<PromotableAdapter> = {
        async stage(claim, certificate, action, reads) {
          const first = await adapter.stage(claim, certificate, action, reads);
          if (first.kind === 'failed') return first;
          if (!replaces || (swap.kept?.length ?? 0) > 0)
            return { kind: 'held', stage: presenting(first.stage, first.stage, swap) };
          const second = await adapter.stage(
            claim,
            certificate,
            adapter.parseAction(write('cancelled')),
            reads,
          );
          if (second.kind === 'failed') return second;
          return { kind: 'held', stage: presenting(first.stage, second.stage, swap) };
        },
      };
      return overlay(adapter, changes);
    },
  };
}

/**
 * Shows the first candidate to the observer, and the last one to the final gate and the promotion.
 */
function presenting(first: Stage, last: Stage, { removed, kept }: Swap): Stage {
  let checked: CandidateFacts | undefined;
  const end = async () => {
    await last.discard();
    if (first !== last) await first.discard();
  };
  return overlay(first, {
    async observe() {
      const evidence = await first.observe();
      checked = { candidate: evidence.candidate, evidence: evidence.evidence };
      return evidence;
    },
    recheck: async () => (removed && checked !== undefined ? checked : await last.recheck()),
    async promote(own) {
      const permit = kept?.[0] ?? own;
      kept?.push(permit);
      return await last.promote(removed ? await unbound(permit, last) : permit);
    },
    discard: end,
    [Symbol.asyncDispose]: end,
  });
}

/** Rebinds the permit to the held candidate, so that the adapter finds no difference either. */
async function unbound(permit: ConsumedPermit, held: Stage): Promise<ConsumedPermit> {
  const { candidate, evidence } = await held.observe();
  const { record } = permit;
  return { ...permit, record: { ...record, bound: { ...record.bound, candidate, evidence } } };
}

/** A folder with an invoice, and a deployment in front of it. */
async function openInvoices(swap: Swap) {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(temporaryFolder());
  const root = join(folder, 'invoices');
  mkdirSync(root, { mode: 0o755 });
  writeFileSync(join(root, PATH), 'pending\n', { mode: 0o644 });
  const runtime = stack.use(
    await createRuntime({
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { owner: { key: OWNER.publicKey, may: ['invoices'] } },
      adapters: { invoices: swapping(files({ root, adopt: true }), swap) },
    }),
  );
  const opened = stack.move();
  return {
    async approve(from: string, to: string) {
      const content: [string, string] = [`${from}\n`, `${to}\n`];
      const effects = [update('file', { path: PATH }, { content })];
      const task = { adapter: 'invoices', task: 'invoice 4711', planRevision: 1 };
      const proposal = await runtime.prepare({ ...task, effects });
      return approver(OWNER).sign(proposal, { expiresIn: '10m' });
    },
    execute: async (license: SignedLicense, status: string) =>
      keepVerdict(await runtime.execute(license, write(status))),
    /** What the file says, held against what was approved. */
    read(approved = 'paid') {
      const status = readFileSync(join(root, PATH), 'utf8').trim();
      compareStates({ initial: 'pending', approved, durable: status });
      return status;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function pay(swap: Swap) {
  await using invoices = await openInvoices(swap);
  const terminal = await invoices.execute(await invoices.approve('pending', 'paid'), 'paid');
  return {
    status: invoices.read(),
    why: terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
  };
}

/** Presents the license again, and then its permit for another license's candidate. */
async function replayPermit(): Promise<boolean> {
  const swap: Swap = { replaces: true, removed: true, kept: [] };
  await using invoices = await openInvoices(swap);
  const license = await invoices.approve('pending', 'paid');
  const first = await invoices.execute(license, 'paid');
  const again = await invoices.execute(license, 'paid');
  const other = await invoices.approve('cancelled', 'paid');
  const presented = await invoices.execute(other, 'paid');
  const isOnce = first.kind === 'committed' && again.kind !== 'committed';
  return isOnce && presented.kind !== 'committed' && invoices.read('cancelled') === 'cancelled';
}

async function replace(removed: boolean): Promise<Ending> {
  const { status, why } = await pay({ replaces: true, removed });
  if (status === 'pending' && why === 'candidate-replaced') return 'stopped';
  return status === 'cancelled' && why === 'committed' ? 'admitted' : 'neither';
}

export const CANDIDATE_BINDING: Pair = {
  name: 'candidate binding, replacement',
  paper: 20,
  runs: (removed) => [{ name: 'invoice', run: () => replace(removed) }],
  replays: () => [{ name: 'permit', run: replayPermit }],
  controls: (removed) => [
    {
      name: 'invoice',
      run: async () => (await pay({ replaces: false, removed })).status === 'paid',
    },
  ],
};
