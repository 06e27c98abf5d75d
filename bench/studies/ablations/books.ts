// Separate cases on SQLite: an invoice is paid, and a trigger may write more than was approved.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { update } from '../../../src/protocol/draft.ts';
import { classify } from '../../../src/protocol/outcome.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import type { IssuerConfig } from '../../../src/runtime/policy.ts';
import { createRuntime, type Internals } from '../../../src/runtime/runtime.ts';
import { compareStates, keepVerdict } from '../../facts.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { Ending, Pair } from './pair.ts';

const EXTRA = 'notification';
const TABLES = `
  create table invoice(id integer primary key, status text not null);
  create table ${EXTRA}(id integer primary key, text text not null);
  insert into invoice values (4711, 'pending');`;
const TRIGGER = `
  create trigger notify after update on invoice begin insert into ${EXTRA}(text) values ('paid'); end;`;

const OWNER = generateApprover('owner');
/** Signs in the owner's name with another key. */
const FORGER = generateApprover('owner');
/** Signs in a name that the deployment may or may not know. */
const CLERK = generateApprover('clerk');

interface Case {
  readonly hasTrigger: boolean;
  readonly signer: typeof OWNER;
  readonly internals: Internals;
  /** The clerk's issuer configuration. */
  readonly clerk?: IssuerConfig;
  /** Whether the approval comes from a rehearsal instead of a manifest. */
  readonly isRehearsed?: boolean;
}

/** Pays the invoice and reads back the durable rows. */
async function pay({ hasTrigger, signer, internals, clerk, isRehearsed }: Case) {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const file = join(folder, 'books.db');
  {
    using db = new DatabaseSync(file);
    db.exec(`pragma journal_mode = wal; ${TABLES} ${hasTrigger ? TRIGGER : ''}`);
  }
  let terminal: Terminal;
  {
    await using runtime = await createRuntime(
      {
        store: join(folder, 'ledger.db'),
        keyring: join(folder, 'keys.json'),
        issuers: { owner: { key: OWNER.publicKey, may: ['books'] }, ...(clerk && { clerk }) },
        adapters: { books: sqlite({ file, relations: ['invoice', EXTRA] }) },
      },
      internals,
    );
    const task = { adapter: 'books', task: 'invoice 4711', planRevision: 1 };
    const effects = [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] })];
    const action = { sql: `update invoice set status = 'paid' where id = 4711` };
    const proposal = isRehearsed
      ? await runtime.plan({ ...task, action })
      : await runtime.prepare({ ...task, effects });
    const license = approver(signer).sign(proposal, { expiresIn: '10m' });
    terminal = keepVerdict(await runtime.execute(license, action));
  }
  using db = new DatabaseSync(file, { readOnly: true });
  const durable = [
    db.prepare('select * from invoice').all(),
    db.prepare(`select * from ${EXTRA}`).all(),
  ];
  const invoice = (status: string) => [[{ id: 4711, status }], []];
  const states = { initial: invoice('pending'), approved: invoice('paid'), durable };
  return {
    why: terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
    ...compareStates<unknown>(states),
  };
}

/** Treats E without the extra write as complete. */
const partialObservation: Internals = {
  classify: (prepared, observation, context) => {
    if (observation.kind === 'incomplete') return classify(prepared, observation, context);
    const effects = observation.effects.filter(({ target }) => target !== EXTRA);
    return classify(prepared, { kind: 'complete', effects }, context);
  },
};

const anySigner: Internals = { verifyLicense: () => true };

async function payWithTrigger(internals: Internals): Promise<Ending> {
  const ended = await pay({ hasTrigger: true, signer: OWNER, internals });
  if (ended.isInitial && ended.why === 'diverged') return 'stopped';
  const isWrong = !ended.isInitial && !ended.isApproved;
  return isWrong && ended.why === 'committed' ? 'admitted' : 'neither';
}

async function payCleanly(how: Pick<Case, 'internals' | 'clerk'>): Promise<boolean> {
  const { isApproved } = await pay({ hasTrigger: false, signer: OWNER, ...how });
  return isApproved;
}

export const COMPLETE_OBSERVATION: Pair = {
  name: 'complete E, extra write',
  paper: 20,
  runs: (removed) => [
    { name: 'invoice', run: () => payWithTrigger(removed ? partialObservation : {}) },
  ],
  controls: (removed) => [
    {
      name: 'invoice',
      run: () => payCleanly({ internals: removed ? partialObservation : {} }),
    },
  ],
};

interface Source {
  readonly name: string;
  readonly paper?: number;
  /** The full system's reason for refusing. */
  readonly refusal: string;
  readonly isRehearsed?: boolean;
  readonly signer: typeof OWNER;
  readonly full: Pick<Case, 'internals' | 'clerk'>;
  readonly removed: Pick<Case, 'internals' | 'clerk'>;
}

const clerkOf = (may: readonly string[], sources: IssuerConfig['sources'] = ['manifest']) => ({
  internals: {},
  clerk: { key: CLERK.publicKey, may, sources },
});
const AS_DESIGNATED = clerkOf(['books']);

/**
 * Approvals of the right outcome by someone who may not approve it. The removed mechanism is the
 * signature check or, in the other cases, the deployment's restriction of who may approve what.
 */
const SOURCES: readonly Source[] = [
  {
    name: 'source swap',
    paper: 20,
    refusal: 'signature-invalid',
    signer: FORGER,
    full: { internals: {} },
    removed: { internals: anySigner },
  },
  {
    name: 'unknown issuer',
    refusal: 'issuer-unknown',
    signer: CLERK,
    full: { internals: {} },
    removed: AS_DESIGNATED,
  },
  {
    name: 'undesignated issuer',
    refusal: 'issuer-not-designated',
    signer: CLERK,
    full: clerkOf([]),
    removed: AS_DESIGNATED,
  },
  {
    name: 'disallowed source',
    refusal: 'source-not-allowed',
    signer: CLERK,
    isRehearsed: true,
    full: AS_DESIGNATED,
    removed: clerkOf(['books'], ['manifest', 'rehearsed']),
  },
];

async function payFrom(source: Source, isRemoved: boolean): Promise<Ending> {
  const { refusal, signer, isRehearsed = false } = source;
  const how = isRemoved ? source.removed : source.full;
  const { isApproved, isInitial, why } = await pay({
    ...{ hasTrigger: false, signer, isRehearsed },
    ...how,
  });
  if (isInitial && why === refusal) return 'stopped';
  return isApproved && why === 'committed' ? 'admitted' : 'neither';
}

export const APPROVAL_SOURCES: readonly Pair[] = SOURCES.map((source) => ({
  name: `approval source, ${source.name}`,
  ...(source.paper !== undefined && { paper: source.paper }),
  runs: (removed) => [{ name: 'invoice', run: () => payFrom(source, removed) }],
  controls: (removed) => [
    {
      name: 'invoice',
      run: () => payCleanly(removed ? source.removed : source.full),
    },
  ],
}));
