import { quoteName, quoteQualified } from '../../../postgres/identifier.ts';
import { listSequences } from '../residue.ts';
import type { TextReader } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';

/**
 * The sequences of registered columns: numbers are drawn from them unseen wherever their position
 * cannot be read, for example from one that a column got after the database was provisioned.
 */
export async function surveySequences(
  control: TextReader,
  facts: BoundaryFacts,
  outlets: Outlets,
): Promise<void> {
  const readable = new Set((await listSequences(control, facts.owner)).map(({ oid }) => oid));
  const drawn = facts.relations.flatMap(({ target, columns }) =>
    columns.flatMap(({ name, draws }) =>
      draws.map((sequence) => ({ sequence, place: `${target}.${name}` })),
    ),
  );
  const hidden = new Map(
    drawn
      .filter(({ sequence }) => !readable.has(sequence.oid))
      .map((one) => [one.sequence.oid, one]),
  );
  for (const { sequence, place } of hidden.values()) {
    const object = quoteQualified(sequence);
    outlets.open({
      outlet: `sequence ${object}`,
      object,
      why: `It is there for ${place}, and ${quoteName(facts.owner)} may not read it, so that draws would not be seen`,
      fix: [`GRANT SELECT ON SEQUENCE ${object} TO ${quoteName(facts.owner)}`],
      needs: 'the owner of the sequence, or a superuser',
    });
  }
  if (hidden.size === 0)
    outlets.observed('sequences of registered columns', 'numbers that no row has are an effect');
}
