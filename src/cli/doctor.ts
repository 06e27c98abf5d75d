import type { AdapterFactory } from '../contract/adapter.ts';
import { systemClock } from '../contract/clock.ts';
import { unobserved } from '../contract/steps.ts';
import { type Outlet, type Remedy, type Survey, unclassified } from '../protocol/boundary.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
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
it. No row of yours is changed; SQLite files get three small tables of EffectMatch's when first opened. The exit code is
0 when everything is closed, and 2 when operations would be refused.`,
  positionals: [],
  flags: {
    adapter: { value: 'NAME', about: 'only this adapter' },
    all: { about: 'list the outlets that are observed or denied as well' },
    sql: { about: 'print only the statements that would close what is open' },
    ...CONFIG_FLAG,
  },
  examples: ['effectmatch doctor', 'effectmatch doctor --adapter books --all', 'effectmatch doctor --sql > close.sql'],
  async run(args, output) {
    const { adapters } = await loadConfig(args);
    const wanted = args.value('adapter');
    const chosen = Object.entries(adapters).filter(([name]) => wanted === undefined || name === wanted);
    if (chosen.length === 0) {
      const names = Object.keys(adapters).join(', ');
      throw usageError(`there is no adapter "${wanted}"; there are ${names}`, 'doctor');
    }
    const surveys: { readonly name: string; readonly survey: Survey }[] = [];
    for (const [name, factory] of chosen) {
      using _progress = showProgress(`surveying ${name}`);
      surveys.push({ name, survey: await sayUnchanged(() => surveyOf(name, factory)) });
    }
    output.document({ adapters: surveys.map(({ name, survey }) => ({ adapter: name, ...describe(survey) })) });
    for (const { name, survey } of surveys) {
      if (args.has('sql')) for (const sql of fixes(survey)) output.line(`${sql};`);
      else report(name, survey, args.has('all'), output);
    }
    return surveys.every(({ survey }) => unclassified(survey).length === 0) ? EXIT.done : EXIT.rejected;
  },
};

async function surveyOf(name: string, factory: AdapterFactory): Promise<Survey> {
  const adapter = await factory.open({ name, clock: systemClock, reached: unobserved });
  try {
    return await adapter.survey();
  } finally {
    await adapter.close();
  }
}

function describe(survey: Survey) {
  const open = unclassified(survey);
  return { closed: open.length === 0, ...survey, remedies: survey.remedies ?? [] };
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

function printOpen({ outlet, by }: Outlet, remedies: readonly Remedy[], { line, paint }: Output): void {
  const fitting = remedies.filter((remedy) => remedy.outlet === outlet);
  line(`  ${paint('strong', printableLine(outlet))}`);
  if (fitting.length === 0) line(`    ${printableLine(by)}`);
  for (const { why, needs, fix } of fitting) {
    line(`    ${printableLine(why)}`);
    line(`    close it (needs ${printableLine(needs)}):`);
    for (const sql of fix) line(`      ${printableLine(sql)};`);
  }
}
