#!/usr/bin/env node
/**
 * Entry point of the `effectmatch` command. It checks the Node version before it imports anything,
 * so that an older Node reports a clear message instead of a syntax error.
 *
 * @module
 */
export {};

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major > 24 || (major === 24 && minor >= 12)) {
  const { runProgram } = await import('./program.ts');
  await runProgram(process.argv.slice(2));
} else {
  const code = 'ERR_EM_NODE_VERSION';
  const message = `EffectMatch needs Node 24.12 or newer, and this is Node ${process.versions.node}; nothing was done`;
  const next =
    'install Node 24.12 or newer (https://nodejs.org), check `node --version`, and run the command again';
  if (process.argv.includes('--json')) {
    process.stdout.write(`${JSON.stringify({ error: { code, message, next } }, null, 2)}\n`);
  } else {
    process.stderr.write(`error ${code}: ${message}\nnext: ${next}\n`);
  }
  process.exitCode = 1;
}
