import { quoteName, quoteQualified } from '../../../postgres/identifier.ts';
import { listSequences } from '../residue.ts';
import type { SurveyContext } from './facts.ts';

/**
 * The sequences of registered columns: draws from one whose position cannot be read are not seen,
 * for example one that a column got after the database was provisioned.
 */
export async function surveySequences({ control, facts, outlets }: SurveyContext): Promise<void> {
  const judged = new Set((await listSequences(control, facts.owner)).map(({ oid }) => oid));
  const before = outlets.problems.length;
  for (const { target, columns } of facts.relations) {
    for (const { name, draws } of columns) {
      for (const sequence of draws.filter(({ oid }) => !judged.has(oid))) {
        judged.add(sequence.oid);
        const object = quoteQualified(sequence);
        const owner = quoteName(facts.owner);
        outlets.open({
          outlet: `sequence ${object}`,
          object,
          why: `It is there for ${target}.${name}, and ${owner} may not read it, so that draws would not be seen`,
          fix: [`GRANT SELECT ON SEQUENCE ${object} TO ${owner}`],
          needs: 'the owner of the sequence, or a superuser',
        });
      }
    }
  }
  if (outlets.problems.length === before)
    outlets.observed('sequences of registered columns', 'numbers that no row has are an effect');
}
