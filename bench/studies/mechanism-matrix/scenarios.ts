import type { Customer } from './service.ts';
import type { PaymentStep, Place, RowStep, Step } from './task.ts';

/** What a run meets. None of it is told to a condition. */
export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly hasDependent: boolean;
  readonly capability: Place['capability'];
  /** A trigger of the application writes one more row. */
  readonly hasTrigger?: boolean;
  /** What the connector of the agent's tools adds to every payment. */
  readonly connector?: object;
  /** How the service treats this customer. */
  readonly arrange?: (customer: Customer) => void;
  /** What another program does in SQLite between planning and execution. */
  readonly drift?: string;
  /** Who says what is to be done, where it is not the designated approver. */
  readonly foreign?: Foreign;
  /**
   * The process ends when the payment has arrived, and another one takes over: before it is made, or
   * when it is made and not yet answered.
   */
  readonly interrupted?: 'before' | 'after';
  /** The paper's reading of an interruption: a process that takes over finds nothing out. */
  readonly isLeftOpen?: boolean;
  /** The label for each condition, in the order of the paper's table. */
  readonly labels: readonly [string, string, string, string, string, string];
  /** Whether the paper has no such row. */
  readonly isOurs?: boolean;
}

/**
 * Who approves instead of the owner: the owner's name with another key, a name that the deployment
 * does not know, one that it knows and has designated for nothing, or one that may not approve what
 * was rehearsed. `designated` is for tests: the deployment lets that one approve it.
 */
export type Foreign = 'forged' | 'unknown' | 'undesignated' | 'rehearsed' | 'designated';

const INVOICE: RowStep = {
  kind: 'row',
  where: 'postgres',
  table: 'invoice',
  id: 4711,
  column: 'status',
  value: 'paid',
  seen: { id: 4711, vendor: 'acme', status: 'pending' },
};
/** The account that was found by looking for the one of acme. */
const ACCOUNT: RowStep = {
  kind: 'row',
  where: 'sqlite',
  table: 'account',
  id: 7,
  column: 'tier',
  value: 'gold',
  seen: { id: 7, owner: 'acme', tier: 'basic' },
};
const PAYMENT: PaymentStep = { kind: 'payment', payee: 'acme', amount: 35 };

export const POSTGRES_SCHEMA = `
  create table invoice (id int primary key, vendor text not null, status text not null);
  create table notification (id int generated always as identity primary key, text text not null);
  insert into invoice values (4711, 'acme', 'pending'), (4712, 'globex', 'pending');`;
export const POSTGRES_TRIGGER = `
  create function notify_paid() returns trigger language plpgsql as
    $$ begin insert into notification (text) values ('paid ' || new.id); return null; end $$;
  create trigger notify after update on invoice for each row execute function notify_paid();`;
export const SQLITE_SCHEMA = `
  pragma journal_mode = wal;
  create table account (id integer primary key, owner text not null, tier text not null);
  create table history (id integer primary key, text text not null);
  insert into account values (7, 'acme', 'basic'), (8, 'globex', 'basic');`;

/** The right change of an account, approved by whom it must not come from. */
const FOREIGN: Omit<Scenario, 'name' | 'foreign'> = {
  steps: [ACCOUNT],
  hasDependent: false,
  capability: 'MEDIATED',
  labels: [
    'accept local match',
    'accept local match',
    'accept local match',
    'accept local match',
    'accept local match',
    'reject',
  ],
};

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'clean chain',
    steps: [INVOICE, ACCOUNT, PAYMENT],
    hasDependent: true,
    capability: 'MEDIATED',
    labels: ['exact', 'exact', 'exact', 'exact', 'exact', 'exact'],
  },
  {
    name: 'extra PostgreSQL write',
    steps: [INVOICE],
    hasDependent: false,
    capability: 'MEDIATED',
    hasTrigger: true,
    labels: ['extra commit', 'extra commit', 'extra commit', 'reject', 'reject', 'reject'],
  },
  {
    name: 'mediated hidden field',
    steps: [PAYMENT],
    hasDependent: false,
    capability: 'MEDIATED',
    connector: { notify: true },
    labels: ['extra commit', 'extra commit', 'exact', 'exact', 'exact', 'exact'],
  },
  {
    name: 'stale selector',
    steps: [ACCOUNT],
    hasDependent: false,
    capability: 'MEDIATED',
    drift: `update account set owner = 'initech' where id = 7; insert into account values (9, 'acme', 'basic')`,
    labels: ['stale commit', 'stale commit', 'reject', 'reject', 'reject', 'reject'],
  },
  {
    name: 'opaque remote extra',
    steps: [PAYMENT],
    hasDependent: true,
    capability: 'OPAQUE',
    arrange: (customer) => {
      customer.sendsNotices = true;
    },
    labels: [
      'extra; advance',
      'extra; advance',
      'extra; advance',
      'uncertain; stop',
      'diverged; stop',
      'diverged; stop',
    ],
  },
  {
    name: 'read-back unavailable',
    steps: [PAYMENT],
    hasDependent: true,
    capability: 'MEDIATED',
    arrange: (customer) => {
      customer.losesReads = true;
    },
    labels: [
      'response; advance',
      'response; advance',
      'reconcile',
      'uncertain; stop',
      'uncertain; stop',
      'uncertain; stop',
    ],
  },
  {
    name: 'response loss / restart',
    steps: [PAYMENT],
    hasDependent: true,
    capability: 'MEDIATED',
    interrupted: 'after',
    isLeftOpen: true,
    labels: [
      'resend; duplicate',
      'resend; duplicate',
      'reconcile',
      'reconcile',
      'reconcile',
      'uncertain; stop',
    ],
  },
  {
    name: 'response loss / restart, by default',
    steps: [PAYMENT],
    hasDependent: true,
    capability: 'MEDIATED',
    interrupted: 'after',
    labels: ['resend; duplicate', 'resend; duplicate', 'exact', 'exact', 'exact', 'exact'],
    isOurs: true,
  },
  {
    name: 'request loss / restart, by default',
    steps: [PAYMENT],
    hasDependent: true,
    capability: 'MEDIATED',
    interrupted: 'before',
    labels: ['exact', 'exact', 'exact', 'exact', 'exact', 'uncertain; stop'],
    isOurs: true,
  },
  {
    ...FOREIGN,
    name: 'wrong-source target',
    foreign: 'forged',
  },
  { ...FOREIGN, name: 'wrong source, unknown issuer', foreign: 'unknown', isOurs: true },
  { ...FOREIGN, name: 'wrong source, undesignated issuer', foreign: 'undesignated', isOurs: true },
  { ...FOREIGN, name: 'wrong source, rehearsed', foreign: 'rehearsed', isOurs: true },
];
