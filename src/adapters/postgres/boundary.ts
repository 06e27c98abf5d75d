import { hash } from 'node:crypto';
import type { Survey } from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import type { QualifiedName } from '../../postgres/identifier.ts';
import { type Inspection, readRelations } from './catalog.ts';
import { readDeferrable } from './constraints.ts';
import type { AssignedColumn } from './observation.ts';
import { type RegisteredName, refused, type Settings } from './options.ts';
import { PROBE_TABLE } from './provision/tables.ts';
import type { Relation } from './relation.ts';
import { listWatched, type Watched } from './watched.ts';

/** A registered relation with what the deployment said about it. */
export interface RegisteredRelation extends Relation {
  readonly bulk: boolean;
  readonly volatile: readonly string[];
}

/** Everything that was read from the catalogue at one moment and holds as long as its fingerprint does. */
export interface Boundary {
  readonly fingerprint: string;
  readonly relations: readonly RegisteredRelation[];
  /** Relations that state may be read from, by target. */
  readonly readable: ReadonlyMap<string, Relation>;
  readonly probe: Relation;
  readonly watched: Watched;
  readonly forceConstraints: string;
  readonly sequences: readonly AssignedColumn[];
  readonly survey: Survey;
}

/**
 * Reads the catalogue until nothing changed while it was read. `known` is returned as it is while its fingerprint is
 * the fresh one: configuration is classified once and looked at again before every use.
 */
export async function readBoundary(
  control: Connection,
  settings: Settings,
  who: { readonly backend: string; readonly executor: string },
  known?: Boundary,
): Promise<Boundary> {
  let fingerprint = await readFingerprint(control);
  if (known?.fingerprint === fingerprint) return known;
  for (let tries = 0; tries < READS_MAX; tries += 1) {
    const boundary = await readOnce(control, settings, who, fingerprint);
    const now = await readFingerprint(control);
    if (now === fingerprint) return boundary;
    fingerprint = now;
  }
  throw new EffectMatchError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    'postgres: the configuration keeps changing; try again later',
  );
}

const READS_MAX = 5;

async function readOnce(
  control: Connection,
  settings: Settings,
  who: { readonly backend: string; readonly executor: string },
  fingerprint: string,
): Promise<Boundary> {
  const names = [...settings.relations, ...settings.reads, PROBE_TABLE];
  const inspections = await readRelations(control, names);
  const found = inspections.map((inspection, index) => usable(inspection, names[index]));
  const relations = settings.relations.map((option, index) => withOptions(found[index], option));
  const readable = found.slice(0, -1).filter((relation) => relation.key.length > 0);
  const probe = found.at(-1);
  if (probe === undefined) throw refused('the probe table is missing; provision the database again');
  return {
    fingerprint,
    relations,
    readable: new Map(readable.map((relation) => [relation.target, relation])),
    probe,
    watched: await listWatched(control),
    forceConstraints: await readDeferrable(control),
    sequences: relations.flatMap(assignedColumns),
    survey: {
      ...who,
      outlets: relations.map(({ target }) => ({ outlet: target, disposition: 'observed', by: 'recorder' })),
      configuration: hash('sha256', fingerprint, 'hex'),
      credentials: hash('sha256', who.executor, 'hex'),
      enforcement: hash('sha256', settings.declared.join(), 'hex'),
    },
  };
}

function usable(inspection: Inspection, name: QualifiedName | undefined): Relation {
  if (inspection.kind === 'usable') return inspection.relation;
  throw refused(
    `relation "${inspection.target}" cannot be registered: ${inspection.why}${name === undefined ? '' : ''}`,
  );
}

function withOptions(relation: Relation | undefined, { bulk, volatile }: RegisteredName): RegisteredRelation {
  if (relation === undefined) throw refused('a relation is missing');
  return { ...relation, bulk, volatile };
}

function assignedColumns({ target, columns }: Relation): readonly AssignedColumn[] {
  return columns.flatMap(({ name, sequence }) =>
    sequence === undefined
      ? []
      : [
          {
            target,
            column: name,
            oid: sequence.oid,
            start: BigInt(sequence.start),
            increment: BigInt(sequence.increment),
          },
        ],
  );
}

async function readFingerprint(control: Connection): Promise<string> {
  const { rows } = await control.query(
    `select md5(string_agg(x, ' ' order by x)) from (
       select 'c' || oid || ':' || xmin from pg_class union all select 't' || oid || ':' || xmin from pg_trigger
       union all select 'p' || oid || ':' || xmin from pg_proc where oid >= 16384
       union all select 'k' || oid || ':' || xmin from pg_constraint union all select 'a' || attrelid || '.' || attnum || ':' || xmin from pg_attribute where attrelid >= 16384) as f(x)`,
  );
  return rows[0]?.[0] ?? '';
}
