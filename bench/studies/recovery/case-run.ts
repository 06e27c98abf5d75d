// The processes of one case: one that executes, two that ask whether they may continue, one that
// recovers.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/contract/steps.ts';
import { bundleProgram } from '../../../test/bundle.ts';
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

const PROGRAMS = { producer: './producer.ts', reader: './reader.ts' } as const;
type Program = keyof typeof PROGRAMS;

interface Ended {
  readonly out: string;
  readonly isKilled: boolean;
}
export type Start = (name: Program, ...given: readonly string[]) => Promise<Ended>;

/**
 * Starts programs in separate processes, which share what Node compiled, in this folder, and
 * nothing else. Each program is bundled once: loading its modules takes longer than what it does.
 */
export function starter(compiled: string): Start {
  const env = { ...process.env, NODE_COMPILE_CACHE: compiled };
  const bundled = new Map<Program, Promise<string>>();
  return async (name, ...given) => {
    const made = bundled.get(name) ?? bundleProgram(new URL(PROGRAMS[name], import.meta.url));
    bundled.set(name, made);
    const program = await made;
    return await new Promise((resolve, reject) => {
      execFile(
        process.execPath,
        ['--no-warnings', program, ...given],
        { env },
        (error, out, complaint) => {
          if (error === null || error.signal === 'SIGKILL')
            resolve({ out, isKilled: error !== null });
          else reject(new Error(`${name} failed: ${complaint}`));
        },
      );
    });
  };
}

/**
 * Executes the case in this folder and kills that process at the step, if there is one. Then the
 * others look at it.
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
