import { randomFillSync } from 'node:crypto';
import type { IdSource } from '../contract/clock.ts';

/** Enough for dozens of ids. A call to the generator costs far more than the bytes it returns. */
const POOL_BYTES = 1024;

let pool = Buffer.alloc(0);
let used = 0;

/** Random ids from the operating system. Bytes are drawn in advance, used once and then erased. */
export const randomIds: IdSource = {
  hex(bytes) {
    if (used + bytes > pool.length) {
      pool = randomFillSync(Buffer.alloc(Math.max(POOL_BYTES, bytes)));
      used = 0;
    }
    const id = pool.toString('hex', used, used + bytes);
    pool.fill(0, used, used + bytes);
    used += bytes;
    return id;
  },
};
