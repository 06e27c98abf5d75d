import type { Approval, ChannelReport } from '../../contract/adapter.ts';
import { fillPath } from '../../http/content.ts';
import { findingsOf, lookAgain, NOT_FOUND, type ReadBackResult } from '../../http/findings.ts';
import type { Gateway } from '../../http/gateway.ts';
import { type Plan, planOf } from '../../http/plan.ts';
import type { ReadBackFindings } from '../../http/remote.ts';
import type { HttpOperation, ReadBackOptions } from './options.ts';

/**
 * Looks for what was sent under this key, with separate requests. Only what is found counts. A
 * missing, late or unreadable answer and "not found" prove nothing, because the request may still
 * be on its way.
 */
export async function readBack(
  gateway: Gateway,
  key: string,
  { readBack: options, assigns = [] }: HttpOperation,
  approved: Approval,
): Promise<ReadBackFindings | string> {
  const { waitsMs, covers, witness } = options;
  const plan = planOf(approved.effects);
  const found = await lookAgain(() => lookUp(gateway, key, options, plan), waitsMs);
  if (typeof found === 'string') return found;
  const more = witness === undefined ? [] : [await askWitness(gateway, key, witness)];
  return findingsOf(found, { covers, assigns }, more);
}

async function lookUp(
  gateway: Gateway,
  key: string,
  options: ReadBackOptions,
  plan: Plan,
): Promise<ReadBackResult | string> {
  const answer = await gateway.get(fillPath(options.path, { ...options.parameters?.(plan), key }));
  if (answer.kind === 'silent') return answer.why;
  if (answer.kind === 'absent') return NOT_FOUND;
  return options.found(answer.body, plan) ?? NOT_FOUND;
}

async function askWitness(
  gateway: Gateway,
  key: string,
  witness: NonNullable<ReadBackOptions['witness']>,
): Promise<ChannelReport> {
  const channel = 'witness';
  const silent = (why: string): ChannelReport => ({ channel, kind: 'silent', why });
  const answer = await gateway.get(fillPath(witness.path, { key }));
  if (answer.kind === 'silent') return silent(answer.why);
  if (answer.kind === 'absent') return silent('it knows nothing of this key');
  const counts = witness.counts(answer.body);
  if (counts === undefined) return silent('it does not say what it counted');
  return { channel, kind: 'counts', counts };
}
