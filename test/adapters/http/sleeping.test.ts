// Goal: a process that slept past its lease sends nothing when it wakes up, whatever its clock
// says. Method: real processes are stopped by SIGSTOP before they write, woken up after the lease,
// and their clocks set back by an hour meanwhile; the service counts what arrived.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPaymentService } from '../../../examples/payment-service/server.ts';

const LEASE_MS = 2000;

/** The state of a process as the kernel tells it; T is stopped. */
function stateOf(pid: number): string {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '')[0] ?? '';
}

for (const step of ['path:permit-consumed', 'adapter:connected']) {
  test(`stopped at ${step} until its lease ran out, and woken up with its clock set back: nothing is sent`, async () => {
    await using service = await startPaymentService();
    const child = spawn(
      process.execPath,
      [new URL('./sleeper.ts', import.meta.url).pathname, service.origin, service.token, step],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let said = '';
    child.stdout.on('data', (chunk) => (said += String(chunk)));
    const closed = once(child, 'close');
    while (child.exitCode === null && stateOf(child.pid ?? 0) !== 'T') await sleep(20);
    assert.equal(child.exitCode, null, 'the process was not stopped');
    const before = service.account('main').arrivals.size;
    await sleep(LEASE_MS + 50);
    child.kill('SIGCONT');
    await closed;
    assert.equal(said.trim(), 'not-sent');
    assert.equal(service.account('main').arrivals.size, before);
    const paid = [...service.account('main').payments.values()].filter(
      ({ memo }) => memo !== 'probe',
    );
    assert.deepEqual(paid, []);
  });
}
