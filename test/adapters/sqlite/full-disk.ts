// Child of stage.test.ts, started with a limit on file sizes: the commit of a large candidate
// cannot be written.
import { DatabaseSync } from 'node:sqlite';
import { openAdapter } from '../../../src/adapters/sqlite/adapter.ts';
import type { Promotion, Stage } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import type { Certificate, Claim, ConsumedPermit } from '../../../src/contract/proof.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';

async function promote(stage: Stage): Promise<Promotion> {
  const { candidate, evidence } = await stage.observe();
  const permit = {
    record: { occurrence, bound: { candidate, evidence } },
    marker: marker('committed'),
  };
  return await stage.promote(permit as unknown as ConsumedPermit);
}

const [file = ''] = process.argv.slice(2);
const occurrence = `occ_${'f'.repeat(40)}` as OccurrenceId;
const marker = (disposition: 'committed' | 'void') => ({
  occurrence,
  disposition,
  text: '{}',
  sealKey: 'k',
  sealMac: 'm',
});

const adapter = await openAdapter(
  { file, relations: ['t'] },
  { name: 'a', clock: systemClock, reached: () => {} },
);
const claim = { sealed: { record: { occurrence } } } as unknown as Claim;
const action = adapter.parseAction({ sql: 'insert into t (v) values (zeroblob(4000000))' });
const staged = await adapter.stage(claim, {} as unknown as Certificate, action);
const promotion =
  staged.kind === 'held' ? await promote(staged.stage) : { ...staged, cause: undefined };
const settled = await adapter.markers.void(marker('void'));
await adapter.close();
using db = new DatabaseSync(file, { readOnly: true });
const rows = db.prepare('select count(*) as n from t').get()?.n;
process.stdout.write(
  JSON.stringify({
    promotion: promotion.kind,
    cause: String('cause' in promotion && promotion.cause),
    settled: settled.kind,
    rows,
  }),
);
