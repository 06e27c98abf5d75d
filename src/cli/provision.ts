import type { AdapterFactory, LeftOut, Provisioning } from '../contract/adapter.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { printableLine } from './output.ts';
import { showProgress } from './progress.ts';
import { sayUnchanged } from './unchanged.ts';
import type { Verb } from './verb.ts';

const ADMIN_VARIABLE = 'EFFECTMATCH_ADMIN_URL';

type Provisionable = Required<Pick<AdapterFactory, 'provisioning'>>;

/** Prepares a backend for protected operations: roles, recorders and the marker table. */
export const provision: Verb = {
  name: 'provision',
  summary: 'prepare a database: roles, recorders, marker table',
  about: `Makes or renews everything that an adapter needs inside its database: a restricted login for agent SQL, a
trusted login, recorders on the registered tables, the marker table. It can be run again at any time, for
example after a table was added, and changes nothing that is already as it should be. All of it happens in one
transaction. It needs a superuser the first time, later a login that owns the tables and may create roles, given with
--admin or in the environment variable ${ADMIN_VARIABLE}; nothing else ever uses that login.`,
  positionals: [],
  flags: {
    adapter: {
      value: 'NAME',
      about: 'the adapter to prepare, where the configuration has several',
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
    const { name, factory } = chooseAdapter(await loadConfig(args), args.value('adapter'));
    const admin = readAdmin(args);
    const remove = args.has('remove');
    const provisioning = await sayUnchanged(() =>
      factory.provisioning(admin, remove ? 'remove' : 'provision'),
    );
    if (args.has('print')) {
      const sql = provisioning.print();
      output.document({ adapter: name, sql });
      output.line(sql);
      return EXIT.done;
    }
    const { steps, leftOut } = await apply(provisioning, remove ? 'removing' : 'provisioning');
    output.document({ adapter: name, steps, removed: remove, leftOut });
    output.line(
      remove
        ? `took away what EffectMatch had in the database of "${name}" (${steps} statements)`
        : `the database of "${name}" is prepared (${steps} statements)${leftOut.length > 0 ? ', apart from what was left out:' : ''}`,
    );
    for (const [line, times] of countEqual(leftOut.map(describeLeftOut))) {
      output.line(
        `${output.paint('caution', 'left out')}  ${line}${times > 1 ? `… (${times} such statements)` : ''}`,
      );
    }
    if (leftOut.length > 0) {
      output.line(
        'Have a superuser run what was left out (`effectmatch provision --print` shows it whole), once;',
      );
      output.line('then `effectmatch doctor` shows whether anything is open.');
    }
    return EXIT.done;
  },
};

const describeLeftOut = ({ statement, needs }: LeftOut) =>
  `needs ${needs}: ${printableLine(statement.replace(/\s+/g, ' ')).slice(0, 100)}`;

/** How often each line comes, in the order in which they first come. */
function countEqual(lines: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
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

function readAdmin(args: Arguments): string {
  const admin = args.value('admin') ?? process.env[ADMIN_VARIABLE] ?? '';
  if (admin === '')
    throw usageError(
      `name the administrator's connection: --admin URL, or ${ADMIN_VARIABLE}`,
      'provision',
    );
  return admin;
}

function chooseAdapter(
  config: RuntimeConfig,
  wanted: string | undefined,
): { readonly name: string; readonly factory: Provisionable } {
  const all = Object.entries(config.adapters).flatMap(([name, factory]) =>
    factory.provisioning === undefined
      ? []
      : [{ name, factory: { provisioning: factory.provisioning } }],
  );
  const fitting = wanted === undefined ? all : all.filter(({ name }) => name === wanted);
  const [only, second] = fitting;
  if (only !== undefined && second === undefined) return only;
  if (all.length === 0) {
    const next = 'nothing is to be done: go on with `effectmatch doctor`';
    throw new GuidedError(
      'ERR_EM_USAGE',
      'no adapter of this configuration needs to be provisioned',
      next,
    );
  }
  throw usageError(
    `name one adapter with --adapter: ${all.map(({ name }) => name).join(', ')}`,
    'provision',
  );
}
