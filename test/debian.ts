import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Installs a Debian package where this process may: as root, with apt. Without it, tests that need it
 * are skipped with what to install, and under CI they fail.
 */
export function installPackage(name: string): void {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return;
  console.log(`Installing ${name}, which some tests need.`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...words: string[]) => spawnSync('apt-get', words, { env, encoding: 'utf8' });
  const install = () => apt('install', '--yes', '--no-install-recommends', name);
  if (install().status === 0) return;
  apt('update');
  const { status, stderr } = install();
  if (status !== 0) console.log(`It could not be installed: ${stderr.trim()}`);
}
