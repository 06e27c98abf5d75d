// The eight operations on MariaDB. Their expected rows are computed here from the initial rows, in
// TypeScript and without SQL.

/** Values of one row, including the key `id`. */
type Cells = Readonly<Record<string, number | string>>;

/** All rows, by table. */
export type Books = Readonly<Record<string, readonly Cells[]>>;

export const SCHEMA = `
  create table account (id int primary key, status varchar(20) not null, tier varchar(20) not null, balance int not null);
  create table orders (id int primary key, account_id int not null, status varchar(20) not null, total int not null);
  create table order_archive (id int primary key, account_id int not null, total int not null);
  create table stock (id int primary key, quantity int not null);
  create table account_archive (id int primary key, balance int not null);
  create table activity (id int primary key, account_id int not null, what varchar(20) not null);
`;

export const INITIAL: Books = {
  account: [
    { id: 1, status: 'pending', tier: 'gold', balance: 500 },
    { id: 2, status: 'active', tier: 'basic', balance: 300 },
    { id: 3, status: 'active', tier: 'gold', balance: 200 },
    { id: 4, status: 'closed', tier: 'basic', balance: 0 },
    { id: 5, status: 'closed', tier: 'basic', balance: 0 },
    { id: 6, status: 'active', tier: 'basic', balance: 0 },
    { id: 7, status: 'closed', tier: 'gold', balance: 40 },
  ],
  orders: [
    { id: 1, account_id: 2, status: 'open', total: 10 },
    { id: 2, account_id: 2, status: 'shipped', total: 20 },
    { id: 3, account_id: 3, status: 'open', total: 30 },
    { id: 4, account_id: 3, status: 'shipped', total: 40 },
    { id: 5, account_id: 1, status: 'open', total: 50 },
  ],
  order_archive: [],
  stock: [
    { id: 1, quantity: 5 },
    { id: 2, quantity: 8 },
  ],
  account_archive: [],
  activity: [],
};

export interface Operation {
  readonly name: string;
  readonly statements: readonly string[];
  /** The rows that the operation must leave. */
  expected(books: Books): Books;
}

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'account activation',
    statements: [
      "update account set status = 'active' where id = 1 and status = 'pending'",
      "insert into activity values (1, 1, 'activated')",
    ],
    expected: (books) => ({
      ...books,
      account: change(books.account, 'id', 1, () => ({ status: 'active' })),
      activity: [{ id: 1, account_id: 1, what: 'activated' }],
    }),
  },
  {
    name: 'bulk transition',
    statements: ["update orders set status = 'processing' where status = 'open'"],
    expected: (books) => ({
      ...books,
      orders: change(books.orders, 'status', 'open', () => ({ status: 'processing' })),
    }),
  },
  {
    name: 'balance transfer',
    statements: [
      'update account set balance = balance - 100 where id = 2',
      'update account set balance = balance + 100 where id = 3',
    ],
    expected: (books) => {
      const charged = change(books.account, 'id', 2, ({ balance }) => plus(balance, -100));
      return { ...books, account: change(charged, 'id', 3, ({ balance }) => plus(balance, 100)) };
    },
  },
  {
    name: 'order archival',
    statements: [
      "insert into order_archive select id, account_id, total from orders where status = 'shipped'",
      "delete from orders where status = 'shipped'",
    ],
    expected: (books) => ({
      ...books,
      order_archive: having(books.orders, 'status', 'shipped').map(({ status, ...kept }) => kept),
      orders: lacking(books.orders, 'status', 'shipped'),
    }),
  },
  {
    name: 'inventory upsert',
    statements: [
      `insert into stock values (2, 4), (3, 6)
        on duplicate key update quantity = quantity + values(quantity)`,
    ],
    expected: (books) => ({
      ...books,
      stock: [
        ...change(books.stock, 'id', 2, ({ quantity }) => ({ quantity: Number(quantity) + 4 })),
        { id: 3, quantity: 6 },
      ],
    }),
  },
  {
    name: 'zero-balance deletion',
    statements: ["delete from account where balance = 0 and status = 'closed'"],
    expected: (books) => ({
      ...books,
      account: rowsOf(books.account).filter(
        ({ balance, status }) => balance !== 0 || status !== 'closed',
      ),
    }),
  },
  {
    name: 'account archival projection',
    statements: [
      "insert into account_archive select id, balance from account where status = 'closed'",
    ],
    expected: (books) => ({
      ...books,
      account_archive: having(books.account, 'status', 'closed').map(({ id, balance }) => ({
        id: id ?? 0,
        balance: balance ?? 0,
      })),
    }),
  },
  {
    name: 'joined bonus update',
    statements: [
      `update account join orders on orders.account_id = account.id set account.balance = account.balance + 25
        where orders.status = 'open' and account.tier = 'gold'`,
    ],
    expected: (books) => {
      const open = having(books.orders, 'status', 'open').map((order) => order.account_id);
      const account = change(books.account, 'tier', 'gold', ({ id, balance }) =>
        open.includes(id) ? plus(balance, 25) : {},
      );
      return { ...books, account };
    },
  },
];

/** A write that no operation includes: a payment into an account that none of them writes. */
export const EXTRA_WRITE = 'update account set balance = balance + 1 where id = 6';

function rowsOf(rows: readonly Cells[] | undefined): readonly Cells[] {
  return rows ?? [];
}

function having(rows: readonly Cells[] | undefined, column: string, value: number | string) {
  return rowsOf(rows).filter((row) => row[column] === value);
}

function lacking(rows: readonly Cells[] | undefined, column: string, value: number | string) {
  return rowsOf(rows).filter((row) => row[column] !== value);
}

function plus(balance: number | string | undefined, amount: number): Cells {
  return { balance: Number(balance) + amount };
}

/** Changes the rows in which a column has this value. */
function change(
  rows: readonly Cells[] | undefined,
  column: string,
  value: number | string,
  changed: (row: Cells) => Cells,
): readonly Cells[] {
  return rowsOf(rows).map((row) => (row[column] === value ? { ...row, ...changed(row) } : row));
}
