import type { Adapter, AdapterFactory } from '../contract/adapter.ts';
import { systemClock } from '../contract/clock.ts';
import { unobserved } from '../contract/steps.ts';
import { randomIds } from '../crypto/approver.ts';
import { keyedTextDigest } from '../crypto/seal.ts';
import { type Outlet, type Remedy, type Survey, unclassified } from '../protocol/boundary.ts';
import { admit, isTriedLater } from '../runtime/admit.ts';
import { LEASE_MS } from '../runtime/configuration.ts';
import { proveService, type ServiceProof } from '../runtime/prove.ts';
import { type RuntimeConfig, SECRET_DOMAIN } from '../runtime/runtime.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { openOrMakeStore } from './open-store.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';
import { sayUnchanged } from './unchanged.ts';
import type { Verb } from './verb.ts';

/** Shows every way by which an operation could leave something behind, and what is still open. */
export const doctor: Verb = {
  name: 'doctor',
  summary: 'survey the boundary: every outlet, what is open, and what would close it',
  about: `Asks each backend for every route by which an agent's operation could persist or send something, and shows
which are observed, which are denied and which are neither. One open outlet refuses every operation on that
backend before anything is staged. For each, the report names the object, why it is reachable and what closes
it. No row of yours is changed; SQLite files get three small tables of EffectMatch's when first opened. A live service
(mediated or with drafts) is tried by its samples, once for a configuration and a credential: the result is kept in
the store, and a service that failed is tried again. The exit code is 0 when everything is closed and proven, and 2
when operations would be refused.`,
  positionals: [],
  flags: {
    adapter: { value: 'NAME', about: 'only this adapter' },
    all: { about: 'list the outlets that are observed or denied as well' },
    sql: { about: 'print only the statements that would close what is open' },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch doctor',
    'effectmatch doctor --adapter books --all',
    'effectmatch doctor --sql > close.sql',
  ],
  async run(args, output) {
    const config = await loadConfig(args);
    const { adapters } = config;
    const wanted = args.value('adapter');
    const chosen = Object.entries(adapters).filter(
      ([name]) => wanted === undefined || name === wanted,
    );
    if (chosen.length === 0) {
      const names = Object.keys(adapters).join(', ');
      throw usageError(`there is no adapter "${wanted}"; there are ${names}`, 'doctor');
    }
    const found: Found[] = [];
    for (const [name, factory] of chosen) {
      using _progress = showProgress(`surveying ${name}`);
      found.push(await sayUnchanged(() => examine(config, name, factory, !args.has('sql'))));
    }
    output.document({
      adapters: found.map(({ name, survey, proof }) => ({
        adapter: name,
        ...describe(survey, proof),
      })),
    });
    for (const { name, survey, proof } of found) {
      if (args.has('sql')) for (const sql of fixes(survey)) output.line(`${sql};`);
      else report(name, survey, args.has('all'), output);
      if (!args.has('sql')) reportProof(name, proof, output);
    }
    const usable = found.every(
      ({ survey, proof }) => unclassified(survey).length === 0 && proof.kind !== 'unproven',
    );
    return usable ? EXIT.done : EXIT.rejected;
  },
};

interface Found {
  readonly name: string;
  readonly survey: Survey;
  readonly proof: ServiceProof;
}

async function examine(
  config: RuntimeConfig,
  name: string,
  factory: AdapterFactory,
  tries: boolean,
): Promise<Found> {
  const { leaseMs = LEASE_MS } = config;
  const adapter = await factory.open({ name, clock: systemClock, reached: unobserved, leaseMs });
  try {
    const survey = await adapter.survey();
    return {
      name,
      survey,
      proof: tries ? await prove(config, name, adapter) : { kind: 'not-needed' },
    };
  } finally {
    await adapter.close();
  }
}

/** Only a live service has to be tried, and then the ledger has to keep the result. */
async function prove(config: RuntimeConfig, name: string, adapter: Adapter): Promise<ServiceProof> {
  if (!isTriedLater(adapter)) return { kind: 'not-needed' };
  await using store = await openOrMakeStore(config);
  const { ledgers, sealer, keyring } = store;
  await admit({ name, sealer, ids: randomIds, clock: systemClock }, adapter);
  const digest = keyedTextDigest(keyring);
  const digestSecret = (secret: string) => digest(SECRET_DOMAIN, secret);
  const context = { name, sealer, ids: randomIds, clock: systemClock, ledgers, digestSecret };
  return await proveService(context, adapter, { asked: true });
}

function describe(survey: Survey, proof: ServiceProof) {
  const open = unclassified(survey);
  return { closed: open.length === 0, ...survey, remedies: survey.remedies ?? [], service: proof };
}

function reportProof(name: string, proof: ServiceProof, { line, paint }: Output): void {
  if (proof.kind === 'not-needed') return;
  if (proof.kind === 'unproven') {
    line(
      `${paint('bad', 'unproven')}  ${name}: every operation is refused; ${printableLine(proof.why)}`,
    );
    return;
  }
  const when =
    proof.tried === 'now'
      ? 'the service was tried now, by its samples'
      : 'the service was tried earlier, with this configuration and credential; nothing was sent';
  line(`${paint('good', 'proven')}  ${name}: ${when}`);
}

function fixes({ remedies = [] }: Survey): readonly string[] {
  return [...new Set(remedies.flatMap(({ fix }) => fix))];
}

function report(name: string, survey: Survey, all: boolean, output: Output): void {
  const { line, paint } = output;
  const open = unclassified(survey);
  const counts = `${survey.outlets.length - open.length} outlets observed or denied`;
  line(
    open.length === 0
      ? `${paint('good', 'closed')}  ${name}: ${counts}`
      : `${paint('bad', 'open')}    ${name}: ${open.length} outlets are open, ${counts}; every operation is refused`,
  );
  for (const outlet of open) printOpen(outlet, survey.remedies ?? [], output);
  const listed = survey.outlets.filter(({ disposition }) => all && disposition !== 'unclassified');
  for (const { outlet, disposition, by } of listed)
    line(`  ${disposition.padEnd(8)}  ${printableLine(`${outlet}: ${by}`)}`);
  for (const declared of survey.declared ?? []) line(`  declared  ${printableLine(declared)}`);
}

function printOpen(
  { outlet, by }: Outlet,
  remedies: readonly Remedy[],
  { line, paint }: Output,
): void {
  const fitting = remedies.filter((remedy) => remedy.outlet === outlet);
  line(`  ${paint('strong', printableLine(outlet))}`);
  if (fitting.length === 0) line(`    ${printableLine(by)}`);
  for (const { why, needs, fix } of fitting) {
    line(`    ${printableLine(why)}`);
    line(`    close it (needs ${printableLine(needs)}):`);
    for (const sql of fix) line(`      ${printableLine(sql)};`);
  }
}
