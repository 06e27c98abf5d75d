import { quoteName } from '../../../postgres/identifier.ts';
import type { SystemCatalog } from './catalog.ts';
import { at, type BoundaryFacts, type SurveyContext } from './facts.ts';

const OWNER_ATTRIBUTES = [
  ['login', 'NOLOGIN'],
  ['super', 'NOSUPERUSER'],
  ['replication', 'NOREPLICATION'],
  ['createrole', 'NOCREATEROLE'],
] as const;

/** The role that owns our own objects. */
export function surveyTrustedRoles({ catalog, facts, outlets }: SurveyContext): void {
  const owner = catalog.roles.find(({ name }) => name === facts.owner);
  const sql = quoteName(facts.owner);
  for (const [attribute, keyword] of OWNER_ATTRIBUTES) {
    if (!owner?.[attribute]) continue;
    outlets.open(
      at.server(sql),
      `role ${sql} that owns the evidence`,
      `It must be ${keyword}: the recorders run with its rights`,
      `ALTER ROLE ${sql} ${keyword}`,
    );
  }
  const schema = catalog.schemas.find(({ name }) => name === 'effectmatch');
  if (schema === undefined) return;
  if (schema.owner === facts.owner)
    outlets.denied('schema effectmatch', `owned by ${sql}, which cannot log in`);
  else
    outlets.open(
      at.server('effectmatch'),
      'schema effectmatch',
      `It belongs to ${quoteName(schema.owner)}, not to ${sql}`,
      `ALTER SCHEMA effectmatch OWNER TO ${sql}`,
    );
}

/** Built-ins that every role may call because defaults cannot be revoked, by what they would do. */
export function surveyReviewed({ unclosed, outlets }: SurveyContext): void {
  const groups = Map.groupBy(unclosed, ([, why]) => why);
  for (const [why, members] of groups) {
    const names = members.map(([name]) => name).join(', ');
    const by = `no statement and no code of the application may name ${names}`;
    outlets.denied(`built-in that ${why}`, by, 'gate');
  }
}

/**
 * A role other than the execution login that can own things: the owner of the first registered
 * relation, or else of the database.
 */
export function ownerFor(catalog: SystemCatalog, facts: BoundaryFacts): string {
  const registered = catalog.relations.find(({ oid }) => oid === facts.relations[0]?.oid);
  const isUsable = registered !== undefined && registered.owner !== facts.executor;
  return isUsable ? registered.owner : (catalog.server[0]?.owner ?? facts.owner);
}
