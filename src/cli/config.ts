import type { RuntimeConfig } from '../runtime/runtime.ts';

/**
 * Returns the deployment as it was written. It exists so that editors complete and check a config
 * file.
 */
export function defineConfig(config: RuntimeConfig): RuntimeConfig {
  return config;
}
