// The process that is killed: it runs one attempt on the kit's adapter, or its recovery.
import { writeSync } from 'node:fs';
import type { AdapterFactory, PromotableAdapter } from '../../contract/adapter.ts';
import { systemClock } from '../../contract/clock.ts';
import type { KillOrder } from './kill.ts';
import { proofsOn } from './kit.ts';

const order = JSON.parse(process.argv[2] ?? '') as KillOrder;
const { default: open } = (await import(order.module)) as {
  readonly default: (place: string) => AdapterFactory;
};

/** Kills this process before the adapter runs another line. The parent reads which step it was. */
function dieAt(step: string): void {
  if (step !== order.step) return;
  writeSync(1, step);
  process.kill(process.pid, 'SIGKILL');
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

const factory = open(order.place);
const context = { name: 'adapter', clock: systemClock, reached: dieAt };
const adapter = (await factory.open(context)) as PromotableAdapter;
const proofs = await proofsOn(adapter, order.attempt);
if (order.role === 'recover') await adapter.markers.void(proofs.voidMarker());
else {
  const action = adapter.parseAction(order.action);
  const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
  if (staged.kind === 'failed') throw new Error(`${staged.reason}: ${staged.detail}`);
  dieAt('staged');
  const permit = proofs.permit(await staged.stage.observe());
  dieAt('observed');
  await staged.stage.recheck();
  dieAt('rechecked');
  await staged.stage.promote(permit);
  dieAt('promoted');
}
await adapter.close();
