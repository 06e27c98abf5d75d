import { RUN_PROVISION } from '../backend/failure.ts';
import type { Adapter, AdapterFactory } from '../contract/adapter.ts';
import { systemClock } from '../contract/clock.ts';
import { unobserved } from '../contract/steps.ts';
import { randomIds } from '../crypto/approver.ts';
import { keyedTextDigest } from '../crypto/seal.ts';
import { type Outlet, type Survey, unclassified } from '../protocol/boundary.ts';
import type { Registration } from '../protocol/registration.ts';
import { admit } from '../runtime/admit.ts';
import { LEASE_MS } from '../runtime/configuration.ts';
import { isTriedLater } from '../runtime/deployment.ts';
import { proveService, type ServiceProof } from '../runtime/prove.ts';
import { type RuntimeConfig, SECRET_DOMAIN } from '../runtime/runtime.ts';
import { CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { chooseAdapterName, loadConfig, openOrCreateRecords } from './deployment.ts';
import { sayUnchanged } from './fault.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';

/** Shows the outlets through which an operation could leave something behind, and what is open. */
export const verb: Verb = {
  summary: 'list every outlet, which ones are open, and what closes them',
  about: `Lists every route by which an agent's operation could persist or send something, and
whether it is observed, denied or open. Operations that can reach an open outlet are refused. For
each open outlet it names the object, why it is reachable and what closes it. It changes none of
your rows; opening an SQLite file for the first time adds three small tables to it. A live service
(mediated or with drafts) is tested with its samples, once per configuration and credential. The
exit code is ${EXIT.done} if everything is closed and proven, and ${EXIT.rejected} if operations
would be refused.`,
  flags: {
    adapter: { value: 'NAME', about: 'only this adapter' },
    all: { about: 'also list the outlets that are observed or denied' },
    sql: { about: 'print only the statements that would close what is open' },
    ...CONFIG_FLAG,
  },
  examples: ['', '--adapter books --all', '--sql > close.sql'],
  async run(args, output) {
    const config = await loadConfig(args);
    const wanted = args.has('adapter') ? chooseAdapterName(config.adapters, args) : undefined;
    const sqlOnly = args.has('sql');
    const results: Examination[] = [];
    for (const [name, factory] of Object.entries(config.adapters)) {
      if (wanted !== undefined && name !== wanted) continue;
      using _progress = showProgress(`surveying ${name}`);
      results.push(await sayUnchanged(() => examine(config, name, factory, !sqlOnly)));
    }
    output.document({ adapters: results.map(describe) });
    for (const result of results) {
      if (sqlOnly) {
        for (const sql of fixes(result.survey)) output.line(`${sql};`);
        continue;
      }
      report(result, args.has('all'), output);
      reportProof(result, output);
    }
    const isUsable = ({ survey, proof }: Examination) =>
      unclassified(survey).length === 0 && proof.kind !== 'unproven';
    return results.every(isUsable) ? EXIT.done : EXIT.rejected;
  },
};

/** What was learned about one adapter. */
interface Examination {
  readonly name: string;
  /** What closes the outlets, if the backend's rights alone do not. */
  readonly boundary: Registration['boundary'];
  readonly survey: Survey;
  readonly proof: ServiceProof;
}

const NO_PROOF: ServiceProof = { kind: 'not-needed' };

async function examine(
  config: RuntimeConfig,
  name: string,
  factory: AdapterFactory,
  tries: boolean,
): Promise<Examination> {
  const { leaseMs = LEASE_MS } = config;
  const adapter = await factory.open({ name, clock: systemClock, reached: unobserved, leaseMs });
  try {
    const survey = await adapter.survey();
    const { boundary } = adapter.registration;
    const proof = tries ? await prove(config, name, adapter) : NO_PROOF;
    return { name, boundary, survey, proof };
  } finally {
    await adapter.close();
  }
}

/** Only a live service has to be tested. The store keeps the result. */
async function prove(config: RuntimeConfig, name: string, adapter: Adapter): Promise<ServiceProof> {
  if (!isTriedLater(adapter)) return NO_PROOF;
  await using records = await openOrCreateRecords(config);
  const { ledgers, sealer, keyring } = records;
  const context = { name, sealer, ids: randomIds, clock: systemClock };
  await admit(context, adapter);
  const digest = keyedTextDigest(keyring);
  const digestSecret = (secret: string) => digest(SECRET_DOMAIN, secret);
  return await proveService({ ...context, ledgers, digestSecret }, adapter, { asked: true });
}

function describe({ name, boundary, survey, proof }: Examination) {
  const closed = unclassified(survey).length === 0;
  const { remedies = [] } = survey;
  const tier = boundary === undefined ? {} : { boundary };
  return { adapter: name, ...tier, closed, ...survey, remedies, service: proof };
}

function reportProof({ name, proof }: Examination, output: Output): void {
  if (proof.kind === 'not-needed') return;
  if (proof.kind === 'unproven') {
    const why = printableLine(proof.why);
    output.item('bad', 'unproven', `${name}: every operation is refused; ${why}`);
    return;
  }
  const when =
    proof.tried === 'now'
      ? 'tried now, with its samples'
      : 'tried earlier, with this configuration and credential; nothing was sent';
  output.item('good', 'proven', `${name}: the service was ${when}`);
}

function fixes({ remedies = [] }: Survey): readonly string[] {
  return [...new Set(remedies.flatMap(({ fix }) => fix))];
}

function report(examined: Examination, all: boolean, output: Output): void {
  const { survey, boundary } = examined;
  const name = boundary === undefined ? examined.name : `${examined.name} (${boundary} boundary)`;
  const open = unclassified(survey);
  const counts = `${survey.outlets.length - open.length} outlets observed or denied`;
  if (open.length === 0) output.item('good', 'closed', `${name}: ${counts}`);
  else {
    const refused = open.every(({ behind }) => behind !== undefined)
      ? 'operations that reach them are refused'
      : 'every operation is refused';
    const are = open.length === 1 ? 'outlet is' : 'outlets are';
    output.item('bad', 'open', `  ${name}: ${open.length} ${are} open, ${counts}; ${refused}`);
  }
  for (const outlet of open) reportOpen(outlet, survey, output);
  for (const { outlet, disposition, by } of all ? survey.outlets : []) {
    if (disposition !== 'unclassified')
      output.line(`  ${disposition.padEnd(8)}  ${printableLine(`${outlet}: ${by}`)}`);
  }
  for (const declared of survey.declared ?? [])
    output.line(`  declared  ${printableLine(declared)}`);
}

function reportOpen(
  { outlet, by, behind }: Outlet,
  { remedies = [] }: Survey,
  output: Output,
): void {
  const { line, paint } = output;
  const fitting = remedies.filter((remedy) => remedy.outlet === outlet);
  line(`  ${paint('strong', printableLine(outlet))}`);
  if (fitting.length === 0) line(`    ${printableLine(by)}`);
  if (behind !== undefined) line(`    refuses operations that reach ${printableLine(behind)}`);
  for (const { why, needs, fix, keep } of fitting) {
    line(`    ${printableLine(why)}`);
    if (keep === RUN_PROVISION) {
      line(`    ${keep}`);
      continue;
    }
    if (keep !== undefined) line(`    keep it: ${printableLine(keep)}`);
    line(`    ${keep === undefined ? '' : 'or '}close it (needs ${printableLine(needs)}):`);
    for (const sql of fix) line(`      ${printableLine(sql)};`);
  }
}
