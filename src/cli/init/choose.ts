import { suggest } from '../../protocol/nearest.ts';
import { GuidedError } from '../guided-error.ts';
import { type FoundDatabase, usableTables } from './found.ts';

/**
 * The tables that an answer names: `all`, or names separated by commas, each of which can be
 * registered.
 */
export function chooseRelations(answer: string, found: FoundDatabase): readonly string[] {
  const usable = usableTables(found).map(({ name }) => name);
  if (answer === 'all') return usable;
  const chosen = answer.split(',').map((name) => name.trim());
  for (const name of chosen) {
    if (usable.includes(name)) continue;
    const why = found.tables.find((table) => table.name === name)?.unusable;
    throw new GuidedError(
      'ERR_EM_USAGE',
      why === undefined
        ? `there is no table "${name}"${suggest(name, usable)}; nothing was written`
        : `table "${name}" cannot be registered: ${why}; nothing was written`,
      why === undefined
        ? `the tables are ${usable.join(', ')}`
        : 'change the table as it says, or leave it out',
    );
  }
  return chosen;
}
