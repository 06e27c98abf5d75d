import type { LeftOut, LoginChange, Provisioning } from '../contract/adapter.ts';
import { invariant } from '../errors.ts';
import { ledgersOf } from '../ledger/configured.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { chooseAdapterName, loadConfig } from './deployment.ts';
import { GuidedError, sayUnchanged } from './fault.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';
import { canAsk, confirm } from './prompt.ts';

/** The environment variable with the administrator's address. */
export const ADMIN_VARIABLE = 'EFFECTMATCH_ADMIN_URL';

/** Prepares a backend for protected operations: roles, recorders and the marker table. */
export const verb: Verb = {
  summary: 'prepare a database: roles, recorders, marker table',
  about: `Creates or updates what an adapter needs inside its database: a restricted login for agent
SQL, a trusted login, recorders on the registered tables, the marker table. It runs in one
transaction and can be repeated at any time. It needs a superuser the first time, and later a login
that owns the tables and may create roles; with boundary: 'managed' (PostgreSQL) it never needs a
superuser. The login is given with --admin or in ${ADMIN_VARIABLE}, and used for nothing else. It
lists logins of other applications that keep or lose something, and asks before one loses anything.
(MariaDB commits each statement by itself; all of them can be repeated; the login needs SUPER or SET
USER.)`,
  flags: {
    adapter: {
      value: 'NAME',
      about: 'the adapter to prepare, if the configuration has several',
    },
    ledger: { about: 'prepare the ledger instead: its schema and its login' },
    admin: { value: 'URL', about: `the administrator's connection (default: ${ADMIN_VARIABLE})` },
    'dry-run': {
      about: 'try it in a transaction that is rolled back; list what each role loses or gains',
    },
    print: { about: 'print the SQL, with what each part needs, and run nothing' },
    yes: { about: 'do not ask, even if logins of other applications lose something' },
    remove: { about: 'remove everything that it created, except markers' },
    markers: {
      about: 'with --remove: also remove the markers, which record what was committed',
      needs: 'remove',
    },
    ...CONFIG_FLAG,
  },
  examples: ['--print', '--ledger', '--remove'],
  async run(args, output) {
    const config = await loadConfig(args);
    const { open, what } = args.has('ledger')
      ? chooseLedger(config)
      : chooseProvisionable(config.adapters, args);
    const admin = readAdmin(args);
    const removed = args.has('remove');
    const forgets = args.has('markers');
    const kind = forgets ? 'remove-markers' : removed ? 'remove' : 'provision';
    const provisioning = await sayUnchanged(() => open(admin, kind));
    if (args.has('print')) {
      const sql = provisioning.print();
      output.document({ ...what, sql });
      output.line(sql);
      return;
    }
    if (args.has('dry-run')) return await compareRights(provisioning, what, output);
    const { changes = [] } = provisioning;
    await agreeToChanges(changes, args, output);
    const { steps, leftOut } = await apply(provisioning, removed ? 'removing' : 'provisioning');
    output.document({ ...what, steps, removed, leftOut, changes });
    const place = 'adapter' in what ? `the database of "${what.adapter}"` : 'the ledger';
    const isKept = provisioning.keepsMarkers === true;
    const kept = isKept ? '; markers stay: --remove --markers removes them' : '';
    const except = leftOut.length > 0 ? ', apart from what was left out:' : '';
    output.line(
      removed
        ? `removed ${forgets ? 'everything of EffectMatch' : 'EffectMatch'} from ${place} (${steps} statements)${kept}`
        : `${place} is prepared (${steps} statements)${except}`,
    );
    if (leftOut.length > 0) printLeftOut(leftOut, output);
  },
};

/** Shows what would change for each role, and rolls everything back. */
async function compareRights(
  { rehearse }: Provisioning,
  what: object,
  output: Output,
): Promise<void> {
  if (rehearse === undefined) {
    const message = 'this server commits each statement by itself, so a dry run is not possible';
    throw new GuidedError('ERR_EM_USAGE', message, 'read the statements with --print');
  }
  const compared = await sayUnchanged(rehearse);
  const changed = compared.filter(({ loses, gains }) => loses.length + gains.length > 0);
  output.document({ ...what, dryRun: true, changed });
  for (const { login, loses, gains } of changed) {
    for (const right of loses)
      output.item('caution', 'loses', `${printableLine(login)}  ${printableLine(right)}`);
    for (const right of gains)
      output.item('good', 'gains', `${printableLine(login)}  ${printableLine(right)}`);
  }
  const same = compared.length - changed.length;
  output.line(
    `${same} of ${compared.length} roles would have the same rights; everything was rolled back`,
  );
}

/** Lists what changes for other applications' logins. Asks first if one loses something. */
async function agreeToChanges(
  changes: readonly LoginChange[],
  args: Arguments,
  output: Output,
): Promise<void> {
  for (const { login, keeps, how } of changes) {
    const text = printableLine(`${login} ${how}`);
    if (keeps) output.item('good', 'keeps', text);
    else output.item('caution', 'loses', text);
  }
  if (args.has('yes') || changes.every(({ keeps }) => keeps)) return;
  const next = 'pass --yes to go on, or --print to read the statements; nothing was changed';
  if (!canAsk(output)) throw new GuidedError('ERR_EM_USAGE', LOSES, next);
  if (!(await confirm('Go on?'))) throw new GuidedError('ERR_EM_USAGE', 'not confirmed', next);
}

const LOSES = 'a login of another application would lose something, and this is not a terminal';

/** The administrator's address, which is never in a configuration. */
export function readAdmin(args: Arguments): string {
  const admin = args.value('admin') ?? process.env[ADMIN_VARIABLE] ?? '';
  if (admin !== '') return admin;
  throw args.wrong(`name the administrator's connection: --admin URL, or ${ADMIN_VARIABLE}`);
}

/** Prints equal lines once, with their number. */
function printLeftOut(leftOut: readonly LeftOut[], output: Output): void {
  const lines = leftOut.map(({ statement, needs }) => {
    const sql = printableLine(statement.replace(/\s+/g, ' ')).slice(0, 100);
    return `needs ${needs}: ${sql}`;
  });
  for (const [text, { length }] of Map.groupBy(lines, (text) => text)) {
    const more = length > 1 ? `… (${length} such statements)` : '';
    output.item('caution', 'left out', `${text}${more}`);
  }
  output.line(
    'Have a superuser run what was left out, once (`effectmatch provision --print` shows all of it);',
  );
  output.line('then `effectmatch doctor` shows whether anything is open.');
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

/** The adapter to prepare, among those that need it. */
function chooseProvisionable(adapters: RuntimeConfig['adapters'], args: Arguments) {
  const provisionable = Object.entries(adapters).filter(([, factory]) => factory.provisioning);
  if (provisionable.length === 0) {
    const message = 'no adapter of this configuration needs to be provisioned';
    throw new GuidedError('ERR_EM_USAGE', message, 'continue with `effectmatch doctor`');
  }
  const name = chooseAdapterName(Object.fromEntries(provisionable), args);
  const factory = adapters[name];
  invariant(factory?.provisioning !== undefined, 'a provisionable adapter was chosen');
  return { what: { adapter: name }, open: factory.provisioning };
}

/** The ledger, if it is in a database. */
function chooseLedger({ store }: RuntimeConfig) {
  const { provisioning: open } = ledgersOf(store);
  if (open !== undefined) return { what: { ledger: true }, open };
  const message = 'the ledger of this configuration is a file, and needs no provisioning';
  const next = "to keep it in PostgreSQL, write store: 'postgres://LOGIN:PASSWORD@HOST/DATABASE'";
  throw new GuidedError('ERR_EM_USAGE', message, next);
}
