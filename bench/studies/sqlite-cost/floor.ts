// What no protected execution on SQLite can leave out, written by hand and without any check of the
// result: the signature, the claim in a file of its own, statements behind an authorizer and a
// session, the changeset, the marker and the unflushed terminal.
import { createHmac, createSecretKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { constants, DatabaseSync } from 'node:sqlite';

/** One statement of the operation. */
interface Statement {
  readonly sql: string;
  readonly values: readonly (number | string)[];
}

const SEAL = createSecretKey(Buffer.alloc(32, 1));
/** About as long as the texts that an execution of five effects stores. */
const LICENSE = 'x'.repeat(900);
const CLAIM = 'x'.repeat(1500);
const MARKER = 'x'.repeat(700);

function seal(text: string): string {
  return createHmac('sha256', SEAL).update(text).digest('hex');
}

/**
 * What no decision can leave out, whatever the backend: the signature, a flushed claim and an
 * unflushed terminal. `between` is what happens on the backend.
 */
export function unavoidableDecision(
  ledger: string,
  between: (id: number) => void = () => {},
): (id: number) => void {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const license = Buffer.from(LICENSE);
  const signature = sign(null, license, privateKey);
  const journal = openJournal(ledger);
  return (id) => {
    if (!verify(null, license, publicKey, signature)) throw new Error('the signature is ours');
    journal.claim(id);
    between(id);
    journal.end(id);
  };
}

/** Runs one operation with exactly these parts. `books` has the application's tables. */
export function unavoidableWriter(
  books: string,
  ledger: string,
  statements: (id: number) => readonly Statement[],
): (id: number) => void {
  const db = new DatabaseSync(books, { timeout: 5000 });
  db.exec('pragma synchronous = full; pragma foreign_keys = on');
  db.exec('create table marker(occurrence text primary key, text text, mac text)');
  db.setAuthorizer(() => constants.SQLITE_OK);
  const prepared = statements(0).map(({ sql }) => db.prepare(sql));
  const mark = db.prepare('insert into marker values (?, ?, ?)');
  return unavoidableDecision(ledger, (id) => {
    db.exec('begin immediate');
    const session = db.createSession();
    for (const [index, { values }] of statements(id).entries()) prepared[index]?.run(...values);
    const changeset = session.changeset();
    session.close();
    if (changeset.length === 0) throw new Error('the operation changes rows');
    mark.run(`occ_${id}`, MARKER, seal(MARKER));
    db.exec('commit');
  });
}

function openJournal(file: string) {
  const db = new DatabaseSync(file);
  db.exec('pragma journal_mode = wal; pragma synchronous = full');
  db.exec('create table journal(slot text primary key, text text, mac text)');
  const add = db.prepare('insert into journal values (?, ?, ?)');
  return {
    claim(id: number) {
      add.run(`occ_${id} claim`, CLAIM, seal(CLAIM));
    },
    /** Not flushed: the marker says the same. */
    end(id: number) {
      db.exec('pragma synchronous = normal');
      add.run(`occ_${id} terminal`, CLAIM, seal(CLAIM));
      db.exec('pragma synchronous = full');
    },
  };
}
