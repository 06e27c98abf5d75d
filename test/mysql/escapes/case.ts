/** One attempt to get something past the boundary of MariaDB. */
export interface MariadbEscape {
  readonly name: string;
  /** SQL as root before the approval; `{exec}`, `{control}` and `{file}` are filled in. */
  readonly setup?: string;
  /** SQL as root after the approval was signed. */
  readonly approvedThen?: string;
  /** SQL as root after the case. */
  readonly cleanup?: string;
  /** Statements of the agent. */
  readonly sql: readonly (string | { readonly sql: string; readonly values: readonly unknown[] })[];
  /** The approved effects; the payment of invoice 1 unless told. */
  readonly approved?: readonly unknown[];
  /**
   * How it must end. `committed` is for clean controls, with the statements that root would run to
   * reach the same state. Everything else leaves the database as it was.
   */
  readonly ends:
    | { readonly committed: string }
    | { readonly rejected: RegExp }
    | { readonly refused: RegExp };
}

/** The tables of all cases. */
export const SCHEMA = `
  create table invoice (
    id int primary key, status varchar(20) not null, amount decimal(10, 2) not null,
    note varchar(100) null, unique key (note)
  );
  create table line (
    id int auto_increment primary key, invoice int not null, text varchar(50) not null default '',
    constraint line_invoice foreign key (invoice) references invoice (id)
  );
  create table vendor (id int primary key);
  create table hidden (id int primary key, text varchar(50));
  create table loose (id int primary key, text varchar(50)) engine = myisam;
  create table aria (id int primary key, text varchar(50)) engine = aria;
  create table code (id varchar(10) collate utf8mb4_general_ci primary key, n bigint unsigned not null);
  create table moment (id int primary key, at date null, doc json null);
  create table padded (id int(5) unsigned zerofill auto_increment primary key, text varchar(9) not null);
  create sequence numbers;
  create function act() returns int modifies sql data
    begin insert into hidden values (9, 'by a function'); return 1; end;
  create procedure proc() insert into hidden values (9, 'by a procedure');
  create view open_invoice as select * from invoice where status = 'pending';
`;

/** The state that every case begins with. */
export const STATE = `
  set foreign_key_checks = 0;
  delete from line; delete from invoice; delete from hidden; delete from loose; delete from aria;
  delete from code; delete from moment; delete from padded;
  insert into code values ('a', 1); insert into moment values (1, null, null);
  insert into invoice values (1, 'pending', 35, null), (2, 'pending', 70, 'b'), (3, 'late', 9, 'c');
  insert into line values (1, 3, 'first');
  insert into hidden values (1, 'kept');
  set foreign_key_checks = 1;
`;
