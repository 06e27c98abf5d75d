// A process that pays once, and is stopped by SIGSTOP at a named step; its clock is set back when
// it wakes up. It prints its verdict.

import type { PaymentService } from '../../../examples/payment-service/server.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { Rig } from './rig.ts';

const [origin = '', token = '', at = ''] = process.argv.slice(2);
const service = {
  origin,
  token,
  [Symbol.asyncDispose]: async () => {},
} as unknown as PaymentService;
await using rig = new Rig(service, 'MEDIATED');
let backMs = 0;
let executing = false;
const reached = (step: Step) => {
  if (!executing || step !== at) return;
  backMs = 3_600_000;
  process.kill(process.pid, 'SIGSTOP');
};
const clock = { now: () => systemClock.now() - backMs, monotonic: systemClock.monotonic };
const LEASE_MS = 2000;
const runtime = await rig.start(
  { leaseMs: LEASE_MS, adapters: { bank: rig.factory(LEASE_MS - 1) } },
  { reached, clock },
);
const license = await rig.approve(runtime);
executing = true;
const terminal = await runtime.execute(license, {});
console.log(terminal.kind === 'rejected' ? terminal.reason : terminal.kind);
