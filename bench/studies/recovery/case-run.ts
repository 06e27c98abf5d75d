// The processes of one case: one that executes, two that ask whether they may continue, one that
// recovers.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Step } from '../../../src/contract/steps.ts';
import { keepFact } from '../../facts.ts';
import { RELEASES } from './case-file.ts';

const READERS = 2;

/** What a case left. */
export interface CaseRun {
  readonly isCorrect: boolean;
  readonly hasTerminal: boolean;
  readonly releases: number;
  readonly releasesAfterRecovery: number;
}

const script = (name: string) => fileURLToPath(new URL(`./${name}.ts`, import.meta.url));

interface Ended {
  readonly out: string;
  readonly isKilled: boolean;
}
export type Start = (name: 'producer' | 'reader', ...given: readonly string[]) => Promise<Ended>;

/**
 * Starts scripts in processes of their own, which share what Node compiled, in this folder, and
 * nothing else.
 */
export function starter(compiled: string): Start {
  const env = { ...process.env, NODE_COMPILE_CACHE: compiled };
  return (name, ...given) =>
    new Promise((resolve, reject) => {
      execFile(
        process.execPath,
        ['--no-warnings', script(name), ...given],
        { env },
        (error, out, complaint) => {
          if (error === null || error.signal === 'SIGKILL')
            resolve({ out, isKilled: error !== null });
          else reject(new Error(`${name} failed: ${complaint}`));
        },
      );
    });
}

/**
 * Has the case in this folder executed, and killed at the step where one is named; then the others
 * look at it.
 */
export async function runCase(
  start: Start,
  folder: string,
  exitAt: Step | undefined,
  look: () => Promise<{ readonly isApproved: boolean }>,
): Promise<CaseRun> {
  const countReleases = () => {
    const file = join(folder, RELEASES);
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
  };
  const { isKilled } = await start('producer', folder, exitAt ?? '-');
  keepFact({ producer: isKilled ? `killed at ${exitAt}` : 'ended' });
  if (isKilled !== (exitAt !== undefined))
    throw new Error('the producer did not end where it should');
  const { isApproved } = await look();
  const saved = await Promise.all(
    Array.from({ length: READERS }, () => start('reader', folder, 'as-saved')),
  );
  const releases = countReleases();
  const answers = saved.map(({ out }) => JSON.parse(out));
  for (const answer of answers) keepFact({ reader: answer });
  const terminals = answers.map(({ terminal }) => terminal);
  if (new Set(terminals).size !== 1) throw new Error(`the readers saw ${terminals.join(' and ')}`);
  keepFact({ recovered: JSON.parse((await start('reader', folder, 'recover')).out) });
  return {
    isCorrect: isApproved,
    hasTerminal: terminals[0] !== null,
    releases,
    releasesAfterRecovery: countReleases(),
  };
}
