import { parseDuration } from '../crypto/duration.ts';
import { ledgersOf } from '../ledger/configured.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { loadConfig, openKeys } from './deployment.ts';
import { GuidedError } from './fault.ts';
import type { Output } from './output.ts';
import { readAdmin } from './provision.ts';

/** Moves a ledger into PostgreSQL, or its old rows into the archive. */
export const verb: Verb = {
  summary: 'move a ledger into PostgreSQL, or its old rows into the archive',
  about: `\`copy FILE\` moves a SQLite ledger into the PostgreSQL ledger that \`store\` names, which
must be empty. Both are verified against one checkpoint. It refuses while attempts are open; stop
the programs that use the file first. Afterwards no program can use the file. \`archive --before
AGE\` moves the rows under a checkpoint that is older than AGE into an archive table. They are still
read and verified, and the licenses that they spent stay spent.`,
  positionals: ['copy|archive'],
  optional: ['FILE'],
  flags: {
    before: { value: 'AGE', about: 'archive: the minimum age of that checkpoint, for example 90d' },
    admin: { value: 'URL', about: "archive: the administrator's connection" },
    ...CONFIG_FLAG,
  },
  examples: ['copy effectmatch.db', 'archive --before 90d'],
  async run(args, output) {
    const [action, file] = args.positionals;
    if (action === 'copy' && file !== undefined) return await copy(args, file, output);
    if (action === 'archive' && file === undefined) return await archive(args, output);
    throw args.wrong('write `copy FILE`, or `archive --before AGE`');
  },
};

async function copy(args: Arguments, file: string, output: Output): Promise<void> {
  const config = await loadConfig(args);
  const { copyFrom } = ledgersOf(config.store);
  if (copyFrom === undefined) throw notInPostgres();
  const { rows } = await copyFrom(openKeys(config).context, file);
  output.document({ copied: rows, from: file });
  output.line(`moved ${rows} rows from ${file}; both ledgers were verified`);
  output.line('keep the file with your backups: no program can use it from now on');
}

const LONGEST_MS = 3650 * 86_400_000;

async function archive(args: Arguments, output: Output): Promise<void> {
  const age = parseDuration(args.needed('before'), LONGEST_MS);
  const { store } = await loadConfig(args);
  const { archive: move } = ledgersOf(store);
  if (move === undefined) throw notInPostgres();
  const { rows } = await move(readAdmin(args), new Date(Date.now() - age));
  output.document({ archived: rows });
  output.line(
    rows === 0
      ? 'nothing to archive: no checkpoint is that old, or what it covers was archived before'
      : `moved ${rows} rows into the archive`,
  );
}

function notInPostgres(): GuidedError<'ERR_EM_USAGE'> {
  return new GuidedError(
    'ERR_EM_USAGE',
    'the ledger of this configuration is not in PostgreSQL; nothing was done',
    "write store: 'postgres://LOGIN:PASSWORD@HOST/DATABASE', then run `effectmatch provision --ledger`",
  );
}
