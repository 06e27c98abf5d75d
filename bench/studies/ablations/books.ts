// Cases of their own on SQLite: an invoice that is paid, with a trigger that may leave more than
// was approved.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { update } from '../../../src/protocol/draft.ts';
import { classify } from '../../../src/protocol/outcome.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { createRuntime, type Internals } from '../../../src/runtime/runtime.ts';
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
/** Someone who signs in the owner's name with a key of their own. */
const STRANGER = generateApprover('owner');

interface Case {
  readonly hasTrigger: boolean;
  readonly signer: typeof OWNER;
  readonly internals: Internals;
}

/** Pays the invoice and reads back what became durable. */
async function pay({ hasTrigger, signer, internals }: Case) {
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
        issuers: { owner: { key: OWNER.publicKey, may: ['books'] } },
        adapters: { books: sqlite({ file, relations: ['invoice', EXTRA] }) },
      },
      internals,
    );
    const effects = [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] })];
    const proposal = await runtime.prepare({
      adapter: 'books',
      task: 'invoice 4711',
      planRevision: 1,
      effects,
    });
    const license = approver(signer).sign(proposal, { expiresIn: '10m' });
    terminal = await runtime.execute(license, {
      sql: `update invoice set status = 'paid' where id = 4711`,
    });
  }
  using db = new DatabaseSync(file, { readOnly: true });
  return {
    why: terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
    paid: db.prepare('select status from invoice').get()?.status === 'paid',
    extra: Number(db.prepare(`select count(*) as n from ${EXTRA}`).get()?.n),
  };
}

/** E without the additional write counts as complete. */
const partialObservation: Internals = {
  classify: (prepared, observation, context) => {
    if (observation.kind === 'incomplete') return classify(prepared, observation, context);
    const effects = observation.effects.filter(({ target }) => target !== EXTRA);
    return classify(prepared, { kind: 'complete', effects }, context);
  },
};

const anySigner: Internals = { verifyLicense: () => true };

async function payWithTrigger(internals: Internals): Promise<Ending> {
  const { paid, extra, why } = await pay({ hasTrigger: true, signer: OWNER, internals });
  if (!paid && extra === 0 && why === 'diverged') return 'stopped';
  return paid && extra === 1 ? 'admitted' : 'neither';
}

async function payForStranger(internals: Internals): Promise<Ending> {
  const { paid, why } = await pay({ hasTrigger: false, signer: STRANGER, internals });
  if (!paid && why === 'signature-invalid') return 'stopped';
  return paid ? 'admitted' : 'neither';
}

async function payCleanly(internals: Internals): Promise<boolean> {
  const { paid, extra } = await pay({ hasTrigger: false, signer: OWNER, internals });
  return paid && extra === 0;
}

export const COMPLETE_OBSERVATION: Pair = {
  name: 'complete E, extra write',
  paper: 20,
  runs: (removed) => [
    { name: 'invoice', run: () => payWithTrigger(removed ? partialObservation : {}) },
  ],
  controls: (removed) => [
    { name: 'invoice', run: () => payCleanly(removed ? partialObservation : {}) },
  ],
};

export const APPROVAL_SOURCE: Pair = {
  name: 'approval source, source swap',
  paper: 20,
  runs: (removed) => [{ name: 'invoice', run: () => payForStranger(removed ? anySigner : {}) }],
  controls: (removed) => [{ name: 'invoice', run: () => payCleanly(removed ? anySigner : {}) }],
};
