import type { LeftOut, Provisioning } from '../contract/adapter.ts';
import { invariant } from '../errors.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { chooseAdapterName, loadConfig } from './deployment.ts';
import { GuidedError, sayUnchanged } from './fault.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';

/** The environment variable with the administrator's address. */
export const ADMIN_VARIABLE = 'EFFECTMATCH_ADMIN_URL';

/** Prepares a backend for protected operations: roles, recorders and the marker table. */
export const provision: Verb = {
  name: 'provision',
  summary: 'prepare a database: roles, recorders, marker table',
  about: `Makes or renews what an adapter needs inside its database: a restricted login for agent
SQL, a trusted login, recorders on the registered tables, the marker table. It is one transaction
and can be run again at any time. It needs a superuser the first time, later a login that owns the
tables and may create roles, given with --admin or in ${ADMIN_VARIABLE}; that login is used for
nothing else. (MariaDB commits each statement by itself; all of them can be repeated.)`,
  flags: {
    adapter: {
      value: 'NAME',
      about: 'the adapter to prepare, if the configuration has several',
    },
    admin: { value: 'URL', about: `the administrator's connection (default: ${ADMIN_VARIABLE})` },
    print: { about: 'print the SQL, with what each part needs, and run nothing' },
    remove: { about: 'take everything away again, markers included' },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch provision --print',
    'effectmatch provision --adapter books',
    'effectmatch provision --remove',
  ],
  async run(args, output) {
    const { adapters } = await loadConfig(args);
    const { name, provisioning: open } = chooseProvisionable(adapters, args);
    const admin = args.value('admin') ?? process.env[ADMIN_VARIABLE] ?? '';
    if (admin === '')
      throw args.wrong(`name the administrator's connection: --admin URL, or ${ADMIN_VARIABLE}`);
    const removed = args.has('remove');
    const provisioning = await sayUnchanged(() => open(admin, removed ? 'remove' : 'provision'));
    if (args.has('print')) {
      const sql = provisioning.print();
      output.document({ adapter: name, sql });
      output.line(sql);
      return EXIT.done;
    }
    const { steps, leftOut } = await apply(provisioning, removed ? 'removing' : 'provisioning');
    output.document({ adapter: name, steps, removed, leftOut });
    const except = leftOut.length > 0 ? ', apart from what was left out:' : '';
    output.line(
      removed
        ? `removed everything of EffectMatch from the database of "${name}" (${steps} statements)`
        : `the database of "${name}" is prepared (${steps} statements)${except}`,
    );
    if (leftOut.length > 0) printLeftOut(leftOut, output);
    return EXIT.done;
  },
};

/** Equal lines are printed once, with their number. */
function printLeftOut(leftOut: readonly LeftOut[], { line, paint }: Output): void {
  const lines = leftOut.map(({ statement, needs }) => {
    const sql = printableLine(statement.replace(/\s+/g, ' ')).slice(0, 100);
    return `needs ${needs}: ${sql}`;
  });
  for (const [text, { length }] of Map.groupBy(lines, (text) => text)) {
    const more = length > 1 ? `… (${length} such statements)` : '';
    line(`${paint('caution', 'left out')}  ${text}${more}`);
  }
  line(
    'Have a superuser run what was left out (`effectmatch provision --print` shows it whole), once;',
  );
  line('then `effectmatch doctor` shows whether anything is open.');
}

async function apply(provisioning: Provisioning, what: string) {
  using progress = showProgress(what);
  let steps = 0;
  const leftOut = await provisioning.apply(() => {
    steps += 1;
    progress.at(`${steps} statements`);
  });
  return { steps, leftOut };
}

/** The adapter to prepare, of those that can be prepared. */
function chooseProvisionable(adapters: RuntimeConfig['adapters'], args: Arguments) {
  const provisionable = Object.entries(adapters).filter(([, factory]) => factory.provisioning);
  if (provisionable.length === 0) {
    const message = 'no adapter of this configuration needs to be provisioned';
    throw new GuidedError('ERR_EM_USAGE', message, 'continue with `effectmatch doctor`');
  }
  const name = chooseAdapterName(Object.fromEntries(provisionable), args);
  const factory = adapters[name];
  invariant(factory?.provisioning !== undefined, 'a provisionable adapter was chosen');
  return { name, provisioning: factory.provisioning };
}
