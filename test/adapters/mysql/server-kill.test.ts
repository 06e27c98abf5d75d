// Goal: a MariaDB server that is killed at any step of an attempt, or around its COMMIT, costs no
// verdict and no effect. Method: a real server, killed from within the steps of a real runtime; a few
// kills from a seed here, and any number with `npm run soak -- --adapter mysql-server`.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { killServer } from '../../mysql/server-kills.ts';
import { chooseSeed } from '../../random.ts';

const KILLS = 12;

describe('MariaDB: server killed', { skip: skipWithoutMariadb() }, () => {
  test('at steps in turn and around COMMIT: verdicts and rows agree after recovery', async () => {
    const seed = chooseSeed();
    const { steps } = await killServer(seed, KILLS);
    console.log(`${KILLS} kills of the server, seed ${seed}`);
    assert.ok(steps.size >= KILLS / 2, `seed ${seed}`);
  });
});
