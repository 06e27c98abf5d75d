import { type QualifiedName, quoteName, quoteQualified } from '../../../postgres/identifier.ts';
import { type ProvisionStep, stepsFor as steps } from '../../../postgres/provisioning.ts';
import { DANGERS } from '../certify/builtins.ts';
import type { BoundaryTier } from '../options.ts';
import { SQL } from '../sql.ts';
import { createRecorders, dropRecorders, type RecordedRelation } from './recorders.ts';

/** Increased when tables or functions change in a way that an older runtime must not use. */
export const VERSION = 3;

/** A table used only for admission probes. */
export const PROBE_TABLE = { schema: 'effectmatch', name: 'probe' } as const;

/** The roles of a deployment. Roles are cluster-wide, so one set may serve several databases. */
interface RoleNames {
  /** Owns schema `effectmatch` and its functions; no session logs in as it. */
  readonly owner: string;
  /**
   * The trusted login, for surveys, markers and recovery. Never runs agent SQL or application code.
   */
  readonly control: string;
  /** The restricted login that runs agent statements. */
  readonly execution: string;
  /** Keeps what the server boundary took from PUBLIC; other roles are members of it. */
  readonly others: string;
}

/**
 * A sequence that fills a column. A column default uses it with the rights of the inserting role;
 * an identity column does not.
 */
interface DrawnSequence extends QualifiedName {
  readonly byDefault: boolean;
}

/** A function or procedure. Its input types distinguish it from others with the same name. */
interface ProvisionedRoutine extends QualifiedName {
  readonly inputs?: readonly string[];
}

/** What a provisioning script is built from. */
export interface ProvisionPlan {
  readonly boundary: BoundaryTier;
  readonly database: string;
  readonly roles: RoleNames;
  readonly relations: readonly (RecordedRelation & {
    readonly sequences: readonly DrawnSequence[];
  })[];
  /** Views that operations may write through. */
  readonly views: readonly (QualifiedName & { readonly events: readonly string[] })[];
  /** Relations that approvals may depend on without writing them. */
  readonly reads: readonly QualifiedName[];
  /** Other roles whose rights operations could borrow. They do not keep what PUBLIC had. */
  readonly lenders: readonly string[];
  /** Whether some of these tables have row security, which trusted logins must bypass. */
  readonly rowSecurity: boolean;
  /** Functions and procedures that agents may call. */
  readonly entryPoints: readonly ProvisionedRoutine[];
  readonly passwords: {
    readonly control: string | undefined;
    readonly execution: string | undefined;
  };
}

/**
 * The script that sets up everything the adapter relies on in the database. It can be run again.
 */
export function provisionSteps(plan: ProvisionPlan): readonly ProvisionStep[] {
  return [
    ...createRoles(plan),
    ...createSchema(plan),
    ...harden(plan),
    ...plan.relations.flatMap((relation) => protectRelation(relation, plan.roles)),
    ...plan.views.flatMap((view) => openView(view, plan.roles)),
    ...bypassPolicies(plan),
    ...plan.reads.flatMap((relation) => openReads(relation, plan.roles)),
    ...plan.entryPoints.flatMap((entry) => openEntryPoint(entry, plan)),
    ...keepOthers(plan),
    ...steps(
      'CREATEROLE',
      'the rights of the owner go back',
      fill({ ...plan.roles }, 'return_owner'),
    ),
  ];
}

type Values = Readonly<Record<string, string>>;

function fill(values: Values, ...names: readonly string[]): readonly string[] {
  return names.map((name) => SQL.provision.get(name, values));
}

function createRoles({ roles, passwords, boundary }: ProvisionPlan): readonly ProvisionStep[] {
  const logins = (['control', 'execution'] as const).flatMap((login) => {
    const password = passwords[login];
    return password === undefined ? [] : fill({ role: roles[login], password }, 'set_password');
  });
  const why = 'three roles: the owner of the records, the trusted login, the restricted login';
  return [
    ...steps('CREATEROLE', why, [
      ...fill({ role: roles.owner }, 'create_owner'),
      ...fill({ role: roles.control }, 'create_control'),
      ...fill({ role: roles.execution }, 'create_execution'),
      ...(boundary === 'server' ? fill({ role: roles.others }, 'create_owner') : []),
      ...fill({ ...roles }, 'read_only', 'not_compiled', 'lend_owner'),
    ]),
    ...steps('CREATEROLE', 'passwords of the two logins', logins),
  ];
}

function createSchema({ database, roles, boundary }: ProvisionPlan): readonly ProvisionStep[] {
  const isManaged = boundary === 'managed';
  const rest = isManaged ? 'CREATE on the database' : 'ownership of the database';
  const needs = `CREATEROLE and ${rest}`;
  const values = { ...roles, database };
  const probe = { ...PROBE_TABLE, bulk: false, partitioned: false };
  const make = isManaged
    ? ['connect_if_needed', 'create_schema_for_owner']
    : ['connect', 'let_owner_create'];
  return [
    ...steps(needs, 'both logins connect, and the owner has its schema', fill(values, ...make)),
    ...steps(needs, 'the record channel, markers and trusted functions', [
      ...fill(values, 'become_owner', ...(isManaged ? [] : ['create_schema'])),
      ...SQL.tables.all({ version: String(VERSION) }),
      ...SQL.functions.all(values),
      ...SQL.guards.all(),
      ...fill(values, 'revoke_tables', 'use_schema', 'use_markers', 'sweep_records'),
      ...fill(values, 'read_probe', 'write_probe'),
      ...createRecorders(probe, roles.execution),
      ...fill(values, 'leave_owner', ...(isManaged ? [] : ['stop_owner_creating'])),
    ]),
  ];
}

/** The hardening statements, with the rights they need and the reason for them. */
const HARDENING: readonly (readonly [needs: string, why: string, names: readonly string[]])[] = [
  [
    'ownership of the database',
    'a database made from a template lets every role create temporary tables',
    ['revoke_temporary'],
  ],
  ['ownership of the schema', 'objects that stand in for others', ['revoke_public_schema']],
  [
    'superuser',
    'anonymous blocks; roles that have anything in this database keep the languages, except the execution login',
    ['keep_languages'],
  ],
  [
    'superuser',
    'the trusted login sees that a row changed, not what is in it',
    ['see_role_versions', 'see_mapping_versions', 'see_subscription_versions'],
  ],
  [
    'ADMIN on pg_read_all_settings, or superuser',
    'the trusted login sees which libraries are preloaded',
    ['see_settings'],
  ],
  ['CREATEROLE', 'the owner of the records cannot log in', ['lock_owner']],
];

/**
 * Closes what PostgreSQL opens to every role by default, in this database only. Built-in functions
 * and languages belong to the superuser that created the cluster. Without superuser rights they
 * stay executable, and the survey reports each of them.
 */
function harden({ database, roles, boundary }: ProvisionPlan): readonly ProvisionStep[] {
  const values = { ...roles, database };
  if (boundary === 'managed')
    return steps(
      'CREATEROLE',
      'the owner of the records cannot log in',
      fill(values, 'lock_owner'),
    );
  const builtins = [...DANGERS].flatMap(([why, names]) =>
    steps(
      'superuser',
      `a built-in that ${why}`,
      fill({ ...values, names: `{${[...names].join(',')}}` }, 'revoke_builtins'),
    ),
  );
  const rest = HARDENING.flatMap(([needs, why, names]) =>
    steps(needs, why, fill(values, ...names)),
  );
  return [...builtins, ...rest];
}

function protectRelation(
  relation: ProvisionPlan['relations'][number],
  roles: RoleNames,
): readonly ProvisionStep[] {
  const values = { ...roles, schema: relation.schema, table: relation.name };
  const needs = `ownership of ${quoteQualified(relation)}`;
  const rights = ['write_relation', 'lock_relation', 'read_relation'];
  return steps(needs, `recorders and rights on ${relation.name}`, [
    ...fill(values, 'use_relation_schema', 'use_types', ...rights),
    ...relation.sequences.flatMap(({ schema, name, byDefault }) => {
      const names = byDefault ? ['draw_sequence', 'read_sequence'] : ['read_sequence'];
      return fill({ ...roles, schema, sequence: name }, ...names);
    }),
    ...createRecorders(relation, roles.execution),
  ]);
}

function openView(
  view: ProvisionPlan['views'][number],
  { execution }: RoleNames,
): readonly ProvisionStep[] {
  const events = ['select', ...view.events].join(', ');
  return steps(`ownership of ${quoteQualified(view)}`, `rights on view ${view.name}`, [
    ...fill({ schema: view.schema, execution }, 'use_execution_schema'),
    `grant ${events} on ${quoteQualified(view)} to ${quoteName(execution)}`,
  ]);
}

function bypassPolicies({ rowSecurity, roles, boundary }: ProvisionPlan): readonly ProvisionStep[] {
  if (!rowSecurity || boundary === 'managed') return [];
  const why = 'approvals may depend on rows with row security, and no policy runs for that';
  const statements = [roles.control, roles.owner].flatMap((role) =>
    fill({ role }, 'bypass_policies'),
  );
  return steps('superuser', why, statements);
}

function keepOthers({ roles, boundary, lenders }: ProvisionPlan): readonly ProvisionStep[] {
  if (boundary === 'managed') return [];
  const why = 'other roles of this database keep what every role had';
  const names = lenders.map((name) => `"${name.replace(/["\\]/g, '\\$&')}"`);
  const values = { ...roles, lenders: `{${names.join(',')}}` };
  return steps('superuser', why, fill(values, 'keep_others'));
}

function openReads(relation: QualifiedName, roles: RoleNames): readonly ProvisionStep[] {
  const values = { ...roles, schema: relation.schema, table: relation.name };
  return steps(
    `ownership of ${quoteQualified(relation)}`,
    `approvals may depend on rows of ${relation.name}`,
    fill(values, 'read_relation_schema', 'lock_relation', 'read_relation'),
  );
}

function openEntryPoint(
  { inputs, ...entry }: ProvisionedRoutine,
  { roles: { execution }, boundary }: ProvisionPlan,
): readonly ProvisionStep[] {
  const types = inputs === undefined ? '' : `(${inputs.join(', ')})`;
  const routine = `${quoteQualified(entry)}${types}`;
  const needs = `ownership of ${quoteQualified(entry)}`;
  return steps(needs, 'an entry point that agents may call', [
    ...(boundary === 'managed' ? [] : [`revoke execute on routine ${routine} from public`]),
    ...fill({ schema: entry.schema, execution }, 'use_execution_schema'),
    `grant execute on routine ${routine} to ${quoteName(execution)}`,
  ]);
}

/**
 * Removes what {@link provisionSteps} added. With `keep`, the markers stay, and with them their
 * schema and its owner. Roles that other databases still use stay as well.
 */
export function removalSteps(
  plan: ProvisionPlan,
  { markers }: { readonly markers: 'keep' | 'drop' },
): readonly ProvisionStep[] {
  const { relations, roles } = plan;
  const needs = 'ownership of the objects';
  const logins = [roles.execution, roles.control];
  const names = [...logins, roles.owner];
  const each = (statement: string, of = names) => of.flatMap((role) => fill({ role }, statement));
  const schema = markers === 'keep' ? 'drop_all_but_markers' : 'drop_schema';
  const borrow = 'an administrator without superuser borrows the roles';
  return [
    ...steps(needs, 'recorders', relations.flatMap(dropRecorders)),
    ...giveBack(plan),
    ...steps('CREATEROLE', borrow, each('lend_role')),
    ...steps(needs, 'the record channel, and the markers unless they stay', fill({}, schema)),
    ...steps(needs, 'rights of the roles in this database', [
      ...each('drop_owned', logins),
      ...each('drop_rights_of_owner', [roles.owner]),
    ]),
    ...steps(needs, 'roles that nothing uses', each('drop_role')),
    ...steps('CREATEROLE', 'roles that stay are not lent any longer', each('return_role')),
  ];
}

/** Without a superuser the role `others` stays, because its rights record what PUBLIC had. */
function giveBack({ roles, boundary }: ProvisionPlan): readonly ProvisionStep[] {
  if (boundary === 'managed') return [];
  const statements = fill({ role: roles.others }, 'give_back', 'drop_owned', 'drop_role');
  return steps('superuser', 'PUBLIC gets back what it had', statements);
}
