// The cost of a call in a held task, compared with the same statement in a plain transaction
// (SQLite and PostgreSQL); fifty tasks at once on PostgreSQL; the gateway's cost per read and
// write.

import type { Cell, Study, StudyOptions } from '../study.ts';
import { measureGateway } from './held-tasks/gateway.ts';
import { measurePostgres } from './held-tasks/postgres.ts';
import { measureSqlite } from './held-tasks/sqlite.ts';

async function run(options: StudyOptions): Promise<readonly Cell[]> {
  return [
    ...(await measureSqlite(options)),
    ...(await measurePostgres(options)),
    ...(await measureGateway(options)),
  ];
}

export const heldTasksStudy: Study = {
  name: 'held-tasks',
  about: 'time per call of a held task over a plain transaction; fifty tasks at once; the gateway',
  run,
};
