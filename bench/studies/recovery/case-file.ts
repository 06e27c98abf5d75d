import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Execution } from '../public-outcomes/state-conditions.ts';

/** The work that depends on the operation. */
export const CONTINUATION = 'next';
/** Where every release of the dependent work leaves a line. */
export const RELEASES = 'releases.log';

/** What the processes of one case share beside the durable state: the deployment, and what an agent was given. */
export interface CaseFile {
  readonly execution: Execution;
  readonly license: SignedLicense;
  readonly publicKey: string;
}

export function writeCase(folder: string, { execution, license, publicKey }: CaseFile): void {
  const { schema, ...rest } = execution;
  const text = JSON.stringify({ execution: { ...rest, schema: [...schema] }, license, publicKey });
  writeFileSync(join(folder, 'case.json'), text);
}

export function readCase(folder: string): CaseFile {
  const { execution, license, publicKey } = JSON.parse(readFileSync(join(folder, 'case.json'), 'utf8'));
  return { execution: { ...execution, schema: new Map(execution.schema) }, license, publicKey };
}
