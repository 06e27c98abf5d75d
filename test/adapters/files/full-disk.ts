// Child of promotion.test.ts, started with a limit on file sizes: a large file cannot be written to
// its end.
import { openAdapter } from '../../../src/adapters/files/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { mintProofs } from '../../../src/testing/proofs.ts';

const [root = ''] = process.argv.slice(2);
const adapter = await openAdapter({ root }, { name: 'a', clock: systemClock, reached: () => {} });
const { claim, certificate } = mintProofs(adapter, 'large');
const operations = [
  { write: { path: 'small', text: 'x' } },
  { write: { path: 'index', text: 'x'.repeat(4_000_000) } },
];
const staged = await adapter.stage(claim, certificate, adapter.parseAction({ operations }));
const detail = staged.kind === 'failed' ? `${staged.reason}: ${staged.detail}` : staged.kind;
await adapter.close();
process.stdout.write(detail);
