// Files: the candidate that was checked says paid; another one, which says cancelled, is put in its
// place.
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
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { overlay } from '../../../test/world/world.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { Ending, Pair } from './pair.ts';

const PATH = 'invoice-4711';
const OWNER = generateApprover('owner');
const write = (status: string) => ({
  operations: [{ write: { path: PATH, text: `${status}\n` } }],
});

interface Swap {
  /**
   * Whether another candidate of the same occurrence takes the place of the one that was observed.
   */
  readonly replaces: boolean;
  /**
   * Whether gate and adapter are told about the candidate that was observed, whichever is there
   * now.
   */
  readonly removed: boolean;
}

function swapping(factory: AdapterFactory, { replaces, removed }: Swap): AdapterFactory {
  return {
    async open(context) {
      const adapter = (await factory.open(context)) as PromotableAdapter;
      const changes: Partial<PromotableAdapter> = {
        async stage(claim, certificate, action, reads) {
          const first = await adapter.stage(claim, certificate, action, reads);
          if (first.kind === 'failed') return first;
          if (!replaces)
            return { kind: 'held', stage: presenting(first.stage, first.stage, removed) };
          const second = await adapter.stage(
            claim,
            certificate,
            adapter.parseAction(write('cancelled')),
            reads,
          );
          if (second.kind === 'failed') return second;
          return { kind: 'held', stage: presenting(first.stage, second.stage, removed) };
        },
      };
      return overlay(adapter, changes);
    },
  };
}

/**
 * Shows the first candidate to the observer, and the last one to the final gate and to the
 * promotion.
 */
function presenting(first: Stage, last: Stage, removed: boolean): Stage {
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
    promote: async (permit) => await last.promote(removed ? await unbound(permit, last) : permit),
    discard: end,
    [Symbol.asyncDispose]: end,
  });
}

/** The permit as if it named no candidate, so that the adapter finds nothing to compare either. */
async function unbound(permit: ConsumedPermit, held: Stage): Promise<ConsumedPermit> {
  const { candidate, evidence } = await held.observe();
  const { record } = permit;
  return { ...permit, record: { ...record, bound: { ...record.bound, candidate, evidence } } };
}

async function pay(swap: Swap) {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const root = join(folder, 'invoices');
  mkdirSync(root, { mode: 0o755 });
  writeFileSync(join(root, PATH), 'pending\n', { mode: 0o644 });
  await using runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { owner: { key: OWNER.publicKey, may: ['invoices'] } },
    adapters: { invoices: swapping(files({ root, adopt: true }), swap) },
  });
  const effects = [update('file', { path: PATH }, { content: ['pending\n', 'paid\n'] })];
  const proposal = await runtime.prepare({
    adapter: 'invoices',
    task: 'invoice 4711',
    planRevision: 1,
    effects,
  });
  const terminal = await runtime.execute(
    approver(OWNER).sign(proposal, { expiresIn: '10m' }),
    write('paid'),
  );
  return {
    status: readFileSync(join(root, PATH), 'utf8').trim(),
    why: terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
  };
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
  controls: (removed) => [
    {
      name: 'invoice',
      run: async () => (await pay({ replaces: false, removed })).status === 'paid',
    },
  ],
};
