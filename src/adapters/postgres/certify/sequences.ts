import { quoteName, quoteQualified } from '../../../postgres/identifier.ts';
import { listSequences } from '../residue.ts';
import type { SurveyContext } from './facts.ts';

/**
 * The sequences of registered columns. Draws from a sequence go unnoticed if its position cannot be
 * read, for example because it was added after the database was provisioned.
 */
export async function surveySequences({ control, facts, outlets }: SurveyContext): Promise<void> {
  const judged = new Set((await listSequences(control, facts.owner)).map(({ oid }) => oid));
  const before = outlets.problems.length;
  for (const { target, columns } of facts.relations) {
    const known = new Set(judged);
    for (const { name, draws } of columns) {
      for (const sequence of draws.filter((drawn) => !known.has(drawn.oid))) {
        known.add(sequence.oid);
        const object = quoteQualified(sequence);
        const owner = quoteName(facts.owner);
        outlets.open(
          // Not behind the table: code may draw from it by a name that it puts together.
          { object, needs: 'the owner of the sequence, or a superuser' },
          `sequence ${object}`,
          `It is there for ${target}.${name}, and ${owner} may not read it, so that draws would not be seen`,
          `GRANT SELECT ON SEQUENCE ${object} TO ${owner}`,
        );
      }
    }
  }
  if (outlets.problems.length === before)
    outlets.observed('sequences of registered columns', 'numbers that no row has are an effect');
}
