import type { ImportedCustomer, TaskName } from '../data/mcpmark.ts';
import { chartRows, summaryRows } from './charts.ts';

/** A row with every value in the database's text form. */
export type TextRow = { readonly [column: string]: string | null };
/** The rows of each relation, by its unqualified name. */
export type Tables = { readonly [relation: string]: readonly TextRow[] };

/**
 * What the approval of a database task may depend on: the request and the rows before it.
 */
export interface DatabasePacket {
  readonly task: TaskName;
  readonly initial: Tables;
  readonly customers: readonly ImportedCustomer[];
  /**
   * Ids of tracks, albums and artists, sorted by name in the source database's collation.
   */
  readonly byName: { readonly [relation in 'Track' | 'Album' | 'Artist']: readonly string[] };
}

/**
 * The rows of all relations that the request approves. A packet contains no statements, so an
 * approval cannot depend on them.
 */
export function approveRows(packet: DatabasePacket): Tables {
  switch (packet.task) {
    case 'customer_data_migration':
      return { ...packet.initial, Customer: importCustomers(packet) };
    case 'employee_hierarchy_management':
      return { ...packet.initial, ...manageEmployees(packet.initial) };
    case 'sales_and_music_charts':
      return {
        ...packet.initial,
        monthly_sales_summary: summaryRows(packet),
        top_music_charts: chartRows(packet),
      };
    default:
      return packet.task satisfies never;
  }
}

export function rowsOf(tables: Tables, relation: string): readonly TextRow[] {
  const rows = tables[relation];
  if (rows === undefined) throw new Error(`there is no relation ${relation}`);
  return rows;
}

export function textIn(row: TextRow, column: string): string {
  const text = row[column];
  if (text === undefined || text === null) throw new Error(`a row has no ${column}`);
  return text;
}

/**
 * New ids follow the highest one, in the order of the list. All customers get representative 3 and
 * no fax.
 */
function importCustomers({ initial, customers }: DatabasePacket): readonly TextRow[] {
  const rows = rowsOf(initial, 'Customer');
  const highest = Math.max(...rows.map((row) => Number(textIn(row, 'CustomerId'))));
  const added = customers.map((customer, index) => ({
    ...customer,
    CustomerId: String(highest + 1 + index),
    Fax: null,
    SupportRepId: '3',
  }));
  return [...rows, ...added];
}

const NEW_AGENTS: readonly TextRow[] = [
  {
    EmployeeId: '9',
    LastName: 'Johnson',
    FirstName: 'Sarah',
    BirthDate: '1985-03-15 00:00:00',
    HireDate: '2009-01-10 00:00:00',
    Address: '123 Oak Street',
    PostalCode: 'T2P 5G3',
    Phone: '+1 (403) 555-0123',
    Fax: '+1 (403) 555-0124',
    Email: 'sarah.johnson@chinookcorp.com',
  },
  {
    EmployeeId: '10',
    LastName: 'Chen',
    FirstName: 'Mike',
    BirthDate: '1982-08-22 00:00:00',
    HireDate: '2009-01-10 00:00:00',
    Address: '456 Pine Ave',
    PostalCode: 'T2P 5G4',
    Phone: '+1 (403) 555-0125',
    Fax: '+1 (403) 555-0126',
    Email: 'mike.chen@chinookcorp.com',
  },
];
const COMMON = {
  Title: 'Sales Support Agent',
  ReportsTo: '1',
  City: 'Calgary',
  State: 'AB',
  Country: 'Canada',
};
const SCORES = { '9': '4.50', '10': '4.20' } as const;
const REASSIGNED: { readonly [customer: string]: string } = {
  1: '9',
  2: '9',
  3: '9',
  4: '10',
  5: '10',
  6: '10',
};
const LEAVING = '7';

/**
 * Follows the detailed steps of the request in order. They leave nine employees, although its last
 * sentence says ten.
 */
function manageEmployees(initial: Tables): Tables {
  const before = rowsOf(initial, 'Employee');
  const leaving = before.find(({ EmployeeId }) => EmployeeId === LEAVING);
  if (leaving === undefined) throw new Error(`there is no employee ${LEAVING}`);
  const released = (person: string | null | undefined) =>
    (person === LEAVING ? leaving.ReportsTo : person) ?? null;
  const staff: readonly TextRow[] = [
    ...before,
    ...NEW_AGENTS.map((agent) => ({ ...agent, ...COMMON })),
  ];
  const Employee = staff
    .filter(({ EmployeeId }) => EmployeeId !== LEAVING)
    .map((row): TextRow => {
      const id = textIn(row, 'EmployeeId');
      const isLead = id === '8';
      return {
        ...row,
        Title: titleOf(id, textIn(row, 'Title')),
        Phone: id === '2' ? '+1 (403) 555-9999' : textIn(row, 'Phone'),
        ReportsTo: released(row.ReportsTo),
        salary: isLead ? '75000.00' : '50000.00',
      };
    });
  const Customer = rowsOf(initial, 'Customer').map((row): TextRow => {
    const agent = REASSIGNED[textIn(row, 'CustomerId')] ?? row.SupportRepId;
    return { ...row, SupportRepId: released(agent) };
  });
  const employee_performance = Object.entries(SCORES).map(([id, score]) => ({
    employee_id: id,
    customers_assigned: String(Customer.filter(({ SupportRepId }) => SupportRepId === id).length),
    performance_score: score,
  }));
  return { Employee, Customer, employee_performance };
}

function titleOf(id: string, title: string): string {
  if (id === '1') return 'CEO';
  if (id === '8') return 'Senior IT Specialist';
  return title === 'IT Staff' ? 'IT Specialist' : title;
}
