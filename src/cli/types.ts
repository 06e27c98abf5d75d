import { resolve } from 'node:path';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import { chooseRelations } from './init/choose.ts';
import { usableTables } from './init/found.ts';
import { inspectSqlite } from './init/inspect-sqlite.ts';
import { loadDriver } from './init/reach-postgres.ts';
import { typesText } from './init/types-text.ts';
import { writePrivateFile } from './private-file.ts';
import type { Verb } from './verb.ts';

const OUT = 'effectmatch.types.ts';
const ADMIN_VARIABLE = 'EFFECTMATCH_ADMIN_URL';

/**
 * Writes the types of a database's tables, so that a manifest with a wrong column does not compile.
 */
export const types: Verb = {
  name: 'types',
  summary: 'write TypeScript types of the tables, for manifests that the compiler checks',
  about: `Reads the tables of an SQLite file or a PostgreSQL database and writes a module with their types and with insert,
update, remove, row, absent and read for them: a wrong table, a wrong column or a value of the wrong type is then an
error of the compiler. The database is only read. Write it again when the schema has changed.`,
  positionals: [],
  optional: ['database'],
  flags: {
    force: { about: 'replace the file if there is one' },
    name: { value: 'NAME', about: 'the name of the adapter (default: the name of the database)' },
    out: { value: 'FILE', about: `where to write it (default: ${OUT})` },
    relations: {
      value: 'LIST',
      about: 'tables, separated by commas (default: all that can be registered)',
    },
  },
  examples: ['effectmatch types books.db --force', `effectmatch types --out src/books.types.ts`],
  async run(args, output) {
    const database = args.positionals[0] ?? process.env[ADMIN_VARIABLE] ?? '';
    if (database === '') throw usageError(`name the database, or set ${ADMIN_VARIABLE}`, 'types');
    const file = resolve(args.value('out') ?? OUT);
    const found = /^postgres(?:ql)?:/i.test(database)
      ? await (await loadDriver()).inspectPostgres(database)
      : inspectSqlite(resolve(database));
    const chosen = chooseRelations(args.value('relations') ?? 'all', found);
    const tables = usableTables(found).filter(({ name }) => chosen.includes(name));
    const text = typesText(args.value('name') ?? found.suggestedName, tables);
    await writePrivateFile(file, text.trimEnd().split('\n'), { force: args.has('force') });
    output.document({ file, tables: chosen });
    output.line(
      `${output.paint('good', 'written')}  ${file}: the types of ${chosen.length} tables`,
    );
    return EXIT.done;
  },
};
