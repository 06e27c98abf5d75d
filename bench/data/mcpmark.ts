// Three MCPMark tasks on the Chinook database. The READMEs next to the data name its source.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

export const TASK_NAMES = [
  'customer_data_migration',
  'employee_hierarchy_management',
  'sales_and_music_charts',
] as const;
export type TaskName = (typeof TASK_NAMES)[number];

export const MCPMARK_FILES = [
  'chinook/chinook.sql.gz',
  'mcpmark/customers.json',
  ...TASK_NAMES.flatMap((name) => [`mcpmark/sql/${name}.setup.sql`, `mcpmark/sql/${name}.dml.sql`]),
] as const;

/** The file that the README names. Any other file would make it a different experiment. */
const CHINOOK_SHA256 = '2e3d98b35d6bd2035b5e8801a05618c5a8ec793fea8e942bc558148a7d697aed';

const customer = z.strictObject({
  FirstName: z.string(),
  LastName: z.string(),
  Company: z.string(),
  Address: z.string(),
  City: z.string(),
  State: z.string(),
  Country: z.string(),
  PostalCode: z.string(),
  Phone: z.string(),
  Email: z.string(),
});

/** One record of the import list. All values are text. */
export type ImportedCustomer = z.infer<typeof customer>;

/** The statements that load the sample database. */
export function loadChinook(folder: string): string {
  const packed = readFileSync(join(folder, 'chinook/chinook.sql.gz'));
  const found = hash('sha256', packed, 'hex');
  if (found !== CHINOOK_SHA256)
    throw new Error(`chinook.sql.gz is another file: its SHA-256 is ${found}`);
  return gunzipSync(packed).toString('utf8');
}

/** Loads the 200 records of the migration, in the order of the request. */
export function loadCustomers(folder: string): readonly ImportedCustomer[] {
  const file = join(folder, 'mcpmark/customers.json');
  const read = z
    .array(customer)
    .length(200)
    .safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`);
  return read.data;
}

/** Loads the schema changes, which are approved separately and made before anything is held. */
export function loadSetup(folder: string, task: TaskName): string {
  return readFileSync(join(folder, `mcpmark/sql/${task}.setup.sql`), 'utf8');
}

/** Loads the candidate: data statements that run in one transaction. */
export function loadCandidate(folder: string, task: TaskName): string {
  return readFileSync(join(folder, `mcpmark/sql/${task}.dml.sql`), 'utf8');
}
