import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
}

/**
 * One line of /proc/<pid>/stat: the name may contain anything, so the fields are read after its
 * closing bracket.
 */
function readEntry(pid: string): (ProcessEntry & { readonly state: string }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { pid: Number(pid), parent: Number(parent), state };
  } catch {
    return undefined; // It ended while we were reading.
  }
}

/**
 * Every process that still runs; one that ended and was not collected by its parent does not count.
 */
function listProcesses(): readonly ProcessEntry[] {
  if (existsSync('/proc/self/stat'))
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => readEntry(name) ?? [])
      .filter(({ state }) => state !== 'Z' && state !== 'X');
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [pid, parent, state] = line.trim().split(/\s+/);
    return pid && parent && !state?.startsWith('Z')
      ? { pid: Number(pid), parent: Number(parent) }
      : [];
  });
}

/**
 * The processes below this one, at any depth. Sessions and groups do not help: each backend starts
 * its own.
 */
export function descendantsOf(root: number): readonly number[] {
  const processes = listProcesses();
  const found = new Set([root]);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of processes) if (found.has(parent)) found.add(pid);
  }
  found.delete(root);
  return [...found];
}

/** Which of these processes still run. */
export function stillRunning(pids: readonly number[]): readonly number[] {
  const running = new Set(listProcesses().map(({ pid }) => pid));
  return pids.filter((pid) => running.has(pid));
}

/** Sends a signal; a process that has ended already is what the caller wanted. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
