import assert from 'node:assert/strict';
import { EffectMatchError, type ErrorCode } from '../errors.ts';

/** Asserts that a promise fails with exactly this code. */
export async function failsWith(code: ErrorCode, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof EffectMatchError, `expected ${code} and got ${String(error)}`);
    assert.equal(error.code, code);
    return true;
  });
}
