import { hash } from 'node:crypto';
import { RUN_PROVISION } from '../../backend/failure.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { errorNumber, type MysqlConnection } from './connection.ts';
import { refused } from './options.ts';
import { VERSION } from './provision.ts';
import { quoteName } from './sql.ts';

/** What only the control account may know; agent SQL may not. */
export interface MysqlDeployment {
  readonly backend: string;
  /** Proves to the procedure `promote` that the runtime calls it in this session. */
  prove(thread: number, marker: MarkerText): string;
}

/** The only server version this adapter is tested on. */
const TESTED = /^10\.11\.\d+-MariaDB/;

/** Identifies the database. Refuses it unless this release provisioned it. */
export async function readDeployment(
  control: MysqlConnection,
  database: string,
): Promise<MysqlDeployment> {
  const [version] = await control.texts('select version()');
  if (!TESTED.test(String(version?.[0])))
    throw refused(`the server is ${version?.[0]}; this adapter was tested on MariaDB 10.11 only`);
  const select = `select backend, inner_pad, outer_pad from ${quoteName(database)}.deployment where version = ${VERSION}`;
  const rows = await control.query(select).catch((error: unknown) => {
    if (errorNumber(error) === undefined) throw error;
    const words = 'the database is not provisioned for the control account';
    throw refused(`${words}; ${RUN_PROVISION}`, error);
  });
  const [row] = rows as readonly (readonly [Buffer, Buffer, Buffer])[];
  if (row === undefined)
    throw refused('the database was provisioned by a different release; provision it again');
  const [backend, inner, outer] = row;
  return {
    backend: backend.toString(),
    prove: (thread, marker) => {
      const { occurrence, sealKey, sealMac, text } = marker;
      const fields = [occurrence, sealKey, sealMac].map((field) =>
        Buffer.from(field).toString('hex').toUpperCase(),
      );
      const message = [thread, ...fields, hash('sha256', text, 'hex')].join('\n');
      const innerDigest = hash('sha256', Buffer.concat([inner, Buffer.from(message)]), 'buffer');
      return hash('sha256', Buffer.concat([outer, innerDigest]), 'hex');
    },
  };
}
