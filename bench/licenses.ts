import { approver, type generateApprover } from '../src/crypto/approver.ts';
import type { PrepareRequest } from '../src/runtime/prepare.ts';
import type { Runtime } from '../src/runtime/runtime.ts';

/**
 * Signs a license for each operation from 1 to `count`. Each license is a copy, as if it came from
 * the approver's machine.
 */
export async function approveAll(
  runtime: Runtime,
  key: ReturnType<typeof generateApprover>,
  work: { readonly count: number; readonly effects: (id: number) => PrepareRequest['effects'] },
): Promise<unknown[]> {
  const bench = approver(key);
  const licenses: unknown[] = [];
  for (let id = 1; id <= work.count; id += 1) {
    const request = {
      adapter: 'books',
      task: `invoice-${id}`,
      planRevision: 1,
      effects: work.effects(id),
    };
    const proposal = await runtime.prepare(request);
    licenses.push(structuredClone(bench.sign(proposal, { expiresIn: '1h' })));
  }
  return licenses;
}
