/**
 * An agent corrects a warehouse on MariaDB. Start it with `npm run example -- stock-mariadb`.
 *
 * @module
 */
import { join } from 'node:path';
import {
  approver,
  createRuntime,
  generateApprover,
  generated,
  insert,
  type Terminal,
  update,
} from 'effectmatch';
import { type MysqlOptions, mysql, planProvisioning } from 'effectmatch/adapters/mysql';
import { chapter, expectDurable, expectVerdict, openWorkplace, tell } from '../story.ts';
import { openDatabase } from './server.ts';

using workplace = openWorkplace();
const at = (name: string) => join(workplace.folder, name);

chapter('1. The database is prepared');
await using database = await openDatabase(workplace);
await database.run(`
  create table stock (sku varchar(20) primary key, amount int not null check (amount >= 0));
  create table movement (
    id int auto_increment primary key, sku varchar(20) not null, change_by int not null
  );
  create trigger note_movement after update on stock for each row
    insert into movement (sku, change_by) values (new.sku, new.amount - old.amount);
  insert into stock values ('apple', 10), ('pear', 3), ('plum', 7);
`);
const options: MysqlOptions = {
  owner: database.unique('em_owner'), // owns recorders and procedures; locked
  controlDatabase: database.unique('effectmatch'), // markers and records
  control: database.url(database.unique('em_control'), 'control-secret'), // trusted: surveys, markers
  execution: database.url(database.unique('em_exec'), 'execution-secret'), // can only run agent SQL
  relations: ['stock', 'movement'],
};
let statements = 0;
await (await planProvisioning(database.url(), options)).apply(() => {
  statements += 1;
});
tell('provision', `${statements} statements by the administrator`);

const warehouse = approver(generateApprover('warehouse'));
await using runtime = await createRuntime({
  store: at('effectmatch.db'),
  keyring: at('effectmatch.keys.json'),
  adapters: { stock: mysql(options) },
  issuers: { warehouse: { key: warehouse.publicKey, may: ['stock'] } },
});
const { outlets } = await runtime.survey('stock');
const open = outlets.filter(({ disposition }) => disposition === 'unclassified');
tell('doctor', `${outlets.length - open.length} outlets closed; ${open.length} are open`);
if (open.length > 0) throw new Error('while an outlet is open, every operation is refused');

/** What the warehouse approves: one amount, and the movement that the trigger writes. */
async function correct(sku: string, [from, to]: [number, number], sql: string): Promise<Terminal> {
  const proposal = await runtime.prepare({
    adapter: 'stock',
    task: `count ${sku}`,
    planRevision: 1,
    effects: [
      update('stock', { sku }, { amount: [from, to] }),
      insert('movement', { id: generated('movement'), sku, change_by: to - from }),
    ],
  });
  tell('approved', proposal.rendering);
  tell('agent', sql);
  return await runtime.execute(warehouse.sign(proposal, { expiresIn: '10m' }), { sql });
}

const stock = () => database.run('select sku, amount from stock order by sku');
const movements = () => database.run('select sku, change_by from movement order by id');
const AFTERWARDS = ['apple 8', 'pear 3', 'plum 7'];

chapter('2. Two apples less; a trigger writes the movement that was approved with it');
const counted = await correct('apple', [10, 8], "update stock set amount = 8 where sku = 'apple'");
expectVerdict(counted, 'committed');
expectDurable('stock', await stock(), AFTERWARDS);
expectDurable('movements', await movements(), ['apple -2']);

chapter('3. The agent forgets the WHERE');
const everything = await correct('pear', [3, 2], 'update stock set amount = amount - 1');
expectVerdict(everything, 'rejected (diverged)');
expectDurable('stock', await stock(), AFTERWARDS);
expectDurable('movements', await movements(), ['apple -2']);

chapter('4. The agent tries to commit by itself');
const forced = await correct('pear', [3, 2], 'commit');
expectVerdict(forced, 'rejected (denied)');
expectDurable('stock', await stock(), AFTERWARDS);
if (workplace.kept) tell('database', database.name);
