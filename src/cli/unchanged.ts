import { createRuntime, type Runtime, type RuntimeConfig } from '../runtime/runtime.ts';
import { describeFault, GuidedError } from './guided-error.ts';

/**
 * Adds to whatever goes wrong in `work`, which only looks or opens, that nothing was changed by it.
 */
export async function sayUnchanged<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, message, next } = describeFault(cause);
    if (code === 'ERR_EM_INVARIANT' || message.includes('nothing was')) throw cause;
    throw new GuidedError(code, `${message}; nothing was changed`, next, { cause });
  }
}

/** Opens a deployment for one command. Until it is open, nothing of the command has been done. */
export function openRuntime(config: RuntimeConfig): Promise<Runtime> {
  return sayUnchanged(() => createRuntime(config));
}
