import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installPackage } from '../debian.ts';
import { serverAccount } from '../postgres/binaries.ts';
import { findFreePort } from '../postgres/cluster.ts';

const PROGRAM = '/usr/sbin/pgbouncer';

/** Why the real pooler cannot run here; undefined where it can. */
export function findMissing(): string | undefined {
  if (!existsSync(PROGRAM)) installPackage('pgbouncer');
  return existsSync(PROGRAM) ? undefined : 'pgbouncer is not installed: apt-get install pgbouncer';
}

/**
 * Starts PgBouncer in transaction mode in front of a server, with fewer sessions than clients. It
 * lets the named users in without a password, as the test servers do.
 */
export async function startPgBouncer(
  server: number,
  users: readonly string[],
): Promise<AsyncDisposable & { readonly port: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-pooler-'));
  chmodSync(folder, 0o755);
  const port = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(join(folder, 'users'), users.map((user) => `"${user}" ""\n`).join(''));
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users')}
pool_mode = transaction
default_pool_size = 3
server_lifetime = 1
`,
  );
  const program = spawn(PROGRAM, ['-q', file], { ...serverAccount(), stdio: 'ignore' });
  const ended = once(program, 'exit');
  while (!(await isOpen(port))) {
    if (program.exitCode !== null) throw new Error(`pgbouncer ended with ${program.exitCode}`);
    await sleep(20);
  }
  return {
    port,
    async [Symbol.asyncDispose]() {
      program.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    once(socket, 'close').then(() => false),
  ]);
  socket.destroy();
  return opened;
}
