// Counts up under one key through the example adapter, trying again whenever another process was
// first.
import assert from 'node:assert/strict';
import { keyValue } from '../../examples/kv-adapter/adapter.ts';
import { type PromotableAdapter, systemClock, unobserved } from '../../src/contract/index.ts';
import { read } from '../../src/index.ts';
import { mintProofs } from '../../src/testing/index.ts';

const [file = '', name = '', rounds = '0'] = process.argv.slice(2);
const opened = await keyValue({ file }).open({ name, clock: systemClock, reached: unobserved });
assert.equal(opened.capability, 'PROMOTABLE');
const adapter = opened as PromotableAdapter;
for (let done = 0, tries = 0; done < Number(rounds); tries += 1) {
  assert.ok(tries < 10_000, 'somebody always comes first, so everybody gets a turn');
  const proofs = mintProofs(adapter, `${name} ${tries}`);
  const [reading] = await adapter.read([read('entry', { key: 'counter' })]);
  const before = reading?.row?.value;
  const action = adapter.parseAction({ set: { counter: `${Number(before ?? 0) + 1}` } });
  const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
  assert.ok(staged.kind === 'held');
  const evidence = await staged.stage.observe();
  // What was read outside the stage may be old already; what the stage changed it from is not.
  const stale = [...evidence.records][0]?.before?.value !== before;
  if (stale) await staged.stage.discard();
  else if ((await staged.stage.promote(proofs.permit(evidence))).kind === 'confirmed') done += 1;
}
