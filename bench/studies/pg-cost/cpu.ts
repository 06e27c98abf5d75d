import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds on a processor so far: by this process, and by the backends of the server. */
export interface CpuMeter {
  read(): { readonly client: number; readonly server: number };
}

/**
 * What an operation costs in processor time hardly depends on what else the machine does, which how
 * long it takes does. The server's part is known on Linux alone.
 */
export function cpuMeter(postmaster: number | undefined): CpuMeter {
  return {
    read() {
      const { user, system } = process.cpuUsage();
      return {
        client: (user + system) / 1000,
        server: postmaster === undefined ? Number.NaN : backendTime(postmaster),
      };
    },
  };
}

function backendTime(postmaster: number): number {
  try {
    const children = readdirSync('/proc').filter(
      (name) => /^\d+$/.test(name) && parentOf(name) === postmaster,
    );
    return children.reduce((sum, pid) => sum + onProcessor(pid), 0);
  } catch {
    return Number.NaN;
  }
}

function parentOf(pid: string): number | undefined {
  const text = readProcess(pid, 'stat');
  return text === undefined
    ? undefined
    : Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
}

function onProcessor(pid: string): number {
  return Number(readProcess(pid, 'schedstat')?.split(' ')[0] ?? 0) / 1e6;
}

/** A process may end between being listed and being read. */
function readProcess(pid: string, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
