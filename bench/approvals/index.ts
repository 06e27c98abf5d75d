import type { Packet, Snapshot } from '../data/state-bench.ts';
import { approveShopping } from './shopping.ts';
import { approveSupport } from './support.ts';
import { approveTravel } from './travel.ts';

const DOMAINS: { readonly [domain: string]: (packet: Packet) => Snapshot } = {
  shopping_assistant: approveShopping,
  customer_support: approveSupport,
  travel: approveTravel,
};

/**
 * The complete state that a request approves. A packet contains no calls or results, so an approval
 * cannot depend on what an execution did.
 */
export function approveState(packet: Packet): Snapshot {
  const approve = DOMAINS[packet.domain];
  if (approve === undefined) throw new Error(`no business rules are known for ${packet.domain}`);
  return approve(packet);
}
