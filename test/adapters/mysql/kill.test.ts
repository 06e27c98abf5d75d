// Goal: a process that dies at any step of an attempt on MariaDB, or of its recovery, leaves a state
// that a fresh process settles correctly. Method: the suite for authors of backends.
import { describe } from 'node:test';
import { killAtEveryStep } from '../../../src/testing/index.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';

describe('MariaDB', { skip: skipWithoutMariadb() }, () => {
  killAtEveryStep('killed at every step', {
    module: new URL('kill-module.ts', import.meta.url),
    async fresh() {
      const schema = `create table t (id int auto_increment primary key, v varchar(20));
        insert into t values (1, 'old')`;
      const { db, options } = await protectedMariadb(schema, { relations: ['t'] });
      return {
        place: JSON.stringify(options),
        action: { sql: "insert into t (v) values ('new')" },
        readDurable: () => db.run('select id, v from t'),
        close: () => db.drop(),
      };
    },
  });
});
