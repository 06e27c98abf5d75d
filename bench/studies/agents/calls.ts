import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { agentTools } from '../../../src/agents/index.ts';
import { approver, loadApproverKey } from '../../../src/index.ts';
import type { FrameworkDriver } from '../../../test/agents/frameworks/driver.ts';
import { type Cell, figure, medianCell, type StudyOptions } from '../../study.ts';
import { callCommitted } from './crowd.ts';
import { PAYERS } from './deployment.ts';
import type { Site } from './site.ts';

const FRAMEWORKS = ['ai-sdk', 'openai-agents', 'langchain', 'mastra'];
const INTEGRATIONS = join(import.meta.dirname, '../../../integrations');
const [AGENT = ''] = PAYERS;

type Way = (payee: string) => Promise<void>;

/**
 * Times one payment through each integration. The same automatic approver signs every payment.
 * `ensure` uses only the runtime: propose, sign, ensure.
 */
export async function measureCalls(
  site: Site,
  url: string,
  { quick, progress }: StudyOptions,
): Promise<readonly Cell[]> {
  await using opened = await site.open();
  const http = await site.connectHttp(url, AGENT);
  const stdio = await site.connectStdio(AGENT);
  const ways = new Map<string, Way>([
    ['ensure', ensuring(site, opened)],
    ...(await inProcess(opened)),
    ['MCP over stdio', (payee) => callCommitted(stdio, payee)],
    ['MCP over HTTP', (payee) => callCommitted(http, payee)],
  ]);
  const [blocks, perBlock] = quick ? [3, 4] : [20, 10];
  const times = new Map([...ways.keys()].map((name) => [name, [] as number[]]));
  for (let block = 0; block <= blocks; block += 1) {
    for (const [name, way] of ways) {
      progress(`block ${block} of ${blocks}: ${name}`);
      for (let turn = 0; turn < perBlock; turn += 1) {
        const begun = performance.now();
        await way(`${name} ${block} ${turn}`);
        if (block > 0) times.get(name)?.push(performance.now() - begun);
      }
    }
  }
  await stdio.close();
  await http.close();
  const to = times.get('ensure') ?? [];
  return [...times].flatMap(([name, samples]) => [
    medianCell(`one payment by ${name}`, samples, 'ms'),
    ...(name === 'ensure'
      ? []
      : [figure(`${name} over ensure`, { statistic: 'ratio', of: samples, to }, 'x')]),
  ]);
}

type Opened = Awaited<ReturnType<Site['open']>>;

function ensuring(site: Site, { runtime, config }: Opened): Way {
  const rule = approver(loadApproverKey(join(site.folder, 'rule.key.json')));
  const operation = config.operations?.pay_1;
  return async (payee) => {
    const input = { payee, amount: 1 };
    const proposal = await runtime.propose('pay_1', input, { task: payee, planRevision: 1 });
    const license = rule.sign(proposal, { expiresIn: '10m' });
    const { kind } = await runtime.ensure(license, operation?.action(input));
    if (kind !== 'committed') throw new Error(`ensure: ${kind}`);
  };
}

/** The tool itself, the plain loop, and each framework whose package is installed. */
async function inProcess({ requests, config }: Opened): Promise<readonly [string, Way][]> {
  const { pay_1: operation } = config.operations ?? {};
  const operations = operation === undefined ? {} : { pay_1: operation };
  const tools = agentTools({ requests, agent: AGENT, run: 'study', operations });
  const [tool] = tools;
  const ways: [string, Way][] = [
    [
      'the tool alone',
      async (payee) => demandCommitted(await tool?.call({ input: { payee, amount: 1 } })),
    ],
  ];
  const loop = '../../../test/agents/frameworks/loop-driver.ts';
  const installed = FRAMEWORKS.filter((name) =>
    existsSync(join(INTEGRATIONS, name, 'node_modules')),
  );
  const drivers = [
    ['a plain loop', loop],
    ...installed.map((name) => [name, join(INTEGRATIONS, name, 'driver.ts')]),
  ] as [string, string][];
  for (const [name, file] of drivers) {
    const { driver } = (await import(file)) as { readonly driver: FrameworkDriver };
    ways.push([
      name,
      async (payee) => {
        const call = { name: 'pay_1', input: { input: { payee, amount: 1 } } };
        const { answers } = await driver.begin(tools, call, 'whole');
        demandCommitted(answers[0]);
      },
    ]);
  }
  return ways;
}

function demandCommitted(answer: { readonly status: string } | undefined): void {
  if (answer?.status !== 'committed') throw new Error(`the tool: ${JSON.stringify(answer)}`);
}
