import { hash } from 'node:crypto';
import { EffectMatchError } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import { VERSION } from './provision/provision.ts';

/** What the control login may know and agent SQL may not. */
export interface PostgresDeployment {
  readonly backend: string;
  /** The server's major version. What a value means to it may change with the next one. */
  readonly major: string;
  /**
   * Authenticates a call of a trusted function, so that agent SQL in the same session cannot make
   * it.
   */
  sign(...parts: readonly string[]): Buffer;
}

/** Reads who this database is, and the secret by which its trusted functions know the runtime. */
export async function readDeployment(control: Connection): Promise<PostgresDeployment> {
  const query = `select d.backend, d.version, d.inner_pad::text, d.outer_pad::text,
      (select oid from pg_catalog.pg_database where datname = current_database()),
      current_setting('server_version_num')::integer / 10000
    from effectmatch.describe() as d`;
  const { rows } = await control.query(query);
  const [backend, version, inner, outer, database, major] = rows[0] ?? [];
  if (backend == null || inner == null || outer == null || Number(version) !== VERSION) {
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_REFUSED',
      `postgres: the database was provisioned by another release (${version ?? 'none'}, this one needs ${VERSION}); provision it again`,
    );
  }
  const [innerPad, outerPad] = [inner, outer].map((pad) => Buffer.from(pad.slice(2), 'hex')) as [
    Buffer,
    Buffer,
  ];
  return {
    // A database made from this one as a template has the same row, but not the same object id.
    backend: `${backend}.${database}`,
    major: String(major),
    sign: (...parts) => digest(outerPad, digest(innerPad, Buffer.from(parts.join('\n')))),
  };
}

function digest(pad: Buffer, message: Buffer): Buffer {
  return hash('sha256', Buffer.concat([pad, message]), 'buffer');
}
