import type { Client } from '@modelcontextprotocol/client';
import { type Cell, exactly, figure, type StudyOptions } from '../../study.ts';
import { AGENTS, PAYERS } from './deployment.ts';
import type { Site } from './site.ts';

/** Makes one payment through a server. Throws unless it committed. */
export async function callCommitted(client: Client, payee: string): Promise<void> {
  const call = { name: 'pay_1', arguments: { input: { payee, amount: 1 } } };
  const { structuredContent } = await client.callTool(call);
  const { status } = structuredContent as { readonly status: string };
  if (status !== 'committed') throw new Error(`MCP: ${JSON.stringify(structuredContent)}`);
}

/** Measures fifty concurrent agents on one server, each with its own token. */
export async function measureCrowd(
  site: Site,
  url: string,
  { quick, progress }: StudyOptions,
): Promise<readonly Cell[]> {
  const each = quick ? 2 : 20;
  const clients = await Promise.all(PAYERS.map((agent) => site.connectHttp(url, agent)));
  const before = site.payments;
  progress(`${AGENTS} agents with ${each} payments each`);
  const begun = performance.now();
  const ended = await Promise.allSettled(
    clients.map(async (client, index) => {
      for (let turn = 0; turn < each; turn += 1)
        await callCommitted(client, `crowd ${index} ${turn}`);
    }),
  );
  const seconds = (performance.now() - begun) / 1000;
  await Promise.all(clients.map((client) => client.close()));
  const failed = ended.filter((end) => end.status === 'rejected');
  for (const { reason } of failed) progress(`an agent failed: ${reason}: ${reason.cause}`);
  return [
    exactly(`errors of ${AGENTS} agents on one server`, failed.length, 'agents', 0),
    exactly(
      `payments missing or doubled by ${AGENTS} agents`,
      Math.abs(site.payments - before - AGENTS * each),
      'payments',
      0,
    ),
    figure(`payments by ${AGENTS} agents on one server`, (AGENTS * each) / seconds, 'per second'),
  ];
}
