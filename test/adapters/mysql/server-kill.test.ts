// Goal: a MariaDB server that is killed at any step of an attempt, or around its COMMIT, costs no
// verdict and no effect. Method: a real server, killed from within the steps of a real runtime, once
// at each step and as often around COMMIT; any number with `npm run soak -- --adapter mysql-server`.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { KILLED_AT, killServer } from '../../mysql/server-kills.ts';
import { chooseSeed } from '../../random.ts';

/** Every other kill is at the next step. */
const KILLS = 2 * KILLED_AT.length;

describe('MariaDB: server killed', { skip: skipWithoutMariadb() }, () => {
  test('at every step and around COMMIT: verdicts and rows agree after recovery', async () => {
    const seed = chooseSeed();
    const { steps } = await killServer(seed, KILLS);
    console.log(`${KILLS} kills of the server, seed ${seed}`);
    assert.deepEqual([...steps.keys()].sort(), KILLED_AT.toSorted(), `seed ${seed}`);
  });
});
