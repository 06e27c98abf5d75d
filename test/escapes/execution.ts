import { readRelations } from '../../src/adapters/postgres/catalog.ts';
import { postgres } from '../../src/adapters/postgres/index.ts';
import { normaliseManifest } from '../../src/adapters/postgres/normalise.ts';
import type { AdapterFactory, PromotableAdapter } from '../../src/contract/adapter.ts';
import {
  approver,
  EffectMatchError,
  generateApprover,
  renderDiff,
  type Task,
  type Terminal,
} from '../../src/index.ts';
import { Connection } from '../../src/postgres/connection.ts';
import { parseTarget } from '../../src/postgres/identifier.ts';
import type { ManifestDraft } from '../../src/protocol/draft.ts';
import { createRuntime, type Internals } from '../../src/runtime/runtime.ts';
import { blind } from '../adapters/blind.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import type { TestDatabase } from '../postgres/server.ts';
import type { EscapeCase, EscapeFile } from './case.ts';

const KEY = generateApprover('approver');

/** The database of one case and the names in it. */
export interface Place {
  readonly db: TestDatabase;
  readonly names: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, string>>;
  readonly file: EscapeFile;
  /** Checks that are switched off, to see that the catalogue notices. */
  readonly internals: Internals;
  /** Each statement is a call of a held task, which is then finished. */
  readonly inTask: boolean;
}

/** How an operation ended, in the words of an expectation, and the product's own explanation. */
export interface Ending {
  readonly found: string;
  readonly detail: string;
  /** What the runtime said; absent if it refused before there could be a verdict. */
  readonly terminal?: Terminal;
}

/** Prepares, approves and executes what the case says, with its administrator acting in between. */
export async function execute(
  { db, names, file, internals, inTask }: Place,
  {
    action,
    approved,
    approvedThen,
    whileHeld,
    views = [],
    entryPoints = file.entryPoints,
  }: EscapeCase,
  aside: (sql: string | undefined) => Promise<void>,
): Promise<Ending> {
  const factory = postgres({
    boundary: file.boundary ?? 'server',
    owner: names.owner ?? '',
    control: db.url(names.control),
    execution: db.url(names.exec),
    relations: file.relations,
    entryPoints,
    views,
    lockTimeoutMs: 1000,
    declared: ['none'],
  });
  try {
    const config = {
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: {
        db: interrupted(forgiving(factory, { db, names, file }), () => aside(whileHeld)),
      },
    };
    await using runtime = await createRuntime(config, internals);
    const effects = approved as ManifestDraft['effects'];
    const proposal = await runtime.prepare({
      adapter: 'db',
      task: 'escape',
      planRevision: 1,
      effects,
    });
    const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
    await aside(approvedThen);
    if (!inTask) return endingOf(await runtime.execute(license, action));
    const work = async (task: Task) => {
      for (const call of callsOf(action)) await task.call(call);
      await aside(whileHeld);
    };
    return endingOf(await runtime.task(license, work));
  } catch (error) {
    if (!(error instanceof EffectMatchError)) throw error;
    const kind = error.code === 'ERR_EM_ACTION_INVALID' ? 'denied' : 'refused';
    return { found: `${kind} ${error.code}`, detail: error.message };
  }
}

function callsOf(action: unknown): readonly unknown[] {
  const { statements } = action as { readonly statements?: readonly unknown[] };
  return statements ?? [action];
}

function endingOf(terminal: Terminal): Ending {
  return { ...describe(terminal), terminal };
}

function describe(terminal: Terminal): Pick<Ending, 'found' | 'detail'> {
  if (terminal.kind !== 'rejected') return { found: terminal.kind, detail: '' };
  const { at, detail, outcome, reason } = terminal;
  const code = /\((ERR_EM_\w+)\)/.exec(detail)?.[1];
  if (at === 'action') return { found: `denied ${code}`, detail };
  if (reason === 'fault') return { found: `refused ${code}`, detail };
  if (at === 'comparison') {
    const differences = outcome?.kind === 'DIVERGED' ? renderDiff(outcome.diff) : '';
    return { found: `observed ${outcome?.kind}`, detail: `${detail} ${differences}` };
  }
  const state = /\[([0-9A-Z]{5})\]/.exec(detail)?.[1];
  if (at === 'stage' || at === 'promotion') return { found: `denied ${state ?? reason}`, detail };
  return { found: at === 'final-gate' ? `refused ${at} ${reason}` : `refused ${at}`, detail };
}

/**
 * Nothing is cast while an outlet is open, so that no approval can be prepared there. Cases go on
 * as if it had been signed before the outlet was opened: the execution must refuse by itself.
 */
function forgiving<Action>(
  factory: AdapterFactory<Action>,
  { db, names, file }: Pick<Place, 'db' | 'names' | 'file'>,
): AdapterFactory<Action> {
  return {
    ...factory,
    async open(context) {
      const adapter = await blind(factory).open(context);
      const normalise = adapter.normalise.bind(adapter);
      adapter.normalise = (manifest) =>
        normalise(manifest).catch(async (error: unknown) => {
          if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_BOUNDARY_OPEN')
            throw error;
          await using control = await Connection.open(db.url(), 'test');
          await using execution = await Connection.open(db.url(names.exec), 'test');
          const wanted = file.relations.map((relation) =>
            typeof relation === 'string' ? relation : relation.name,
          );
          const found = await readRelations(
            control,
            wanted.flatMap((name) => parseTarget(name) ?? []),
          );
          const relations = found.flatMap((one) => (one.kind === 'usable' ? [one.relation] : []));
          return await normaliseManifest(
            {
              registration: adapter.registration,
              relations: new Map(relations.map((relation) => [relation.target, relation])),
              isolation: 'read committed',
              withExecution: (use) => use(execution),
              read: () => Promise.resolve([]),
            },
            manifest,
          );
        });
      return adapter;
    },
  };
}

/** Runs something between the end of the action and its observation. */
function interrupted<Action>(
  factory: AdapterFactory<Action>,
  held: () => Promise<void>,
): AdapterFactory<Action> {
  return {
    ...factory,
    async open(context) {
      const adapter = (await factory.open(context)) as PromotableAdapter<Action>;
      const stage = adapter.stage.bind(adapter);
      let isAdmitted = false; // admission stages a probe first: only what follows an action of the agent counts
      const parse = adapter.parseAction.bind(adapter);
      adapter.parseAction = (input) => {
        isAdmitted = true;
        return parse(input);
      };
      adapter.stage = async (...given) => {
        const staged = await stage(...given);
        if (isAdmitted) await held();
        return staged;
      };
      return adapter;
    },
  };
}
