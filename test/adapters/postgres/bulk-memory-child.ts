// Approves and executes an insert of many rows in a process whose heap is limited; see bulk-memory.test.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgres } from '../../../src/adapters/postgres/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { insert } from '../../../src/protocol/draft.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';

const [options = '', count = ''] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'effectmatch-bulk-'));
const key = generateApprover('person');
const runtime = await createRuntime({
  store: join(folder, 'ledger.db'),
  keyring: join(folder, 'keyring.json'),
  issuers: { person: { key: key.publicKey, may: ['books'] } },
  adapters: { books: postgres(JSON.parse(options)) },
});
const effects = Array.from({ length: Number(count) }, (_, id) =>
  insert('line', { id, amount: 100, text: `line ${id}` }),
);
const proposal = await runtime.prepare({ adapter: 'books', task: 't', planRevision: 1, effects });
const license = approver(key).sign(proposal, { expiresIn: '1h' });
const sql =
  "insert into line select n - 1, 100, 'line ' || (n - 1) from generate_series(1, $1::integer) as n";
const { kind } = await runtime.execute(license, { sql, values: [Number(count)] });
console.log(kind);
await runtime.close();
rmSync(folder, { recursive: true, force: true });
