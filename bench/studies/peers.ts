// What people use today, on the same statements: an extra write by a trigger, a cascade, changed
// data, a trigger added later, and an approval that is used twice. The study judges all rows that
// exist afterwards.
import { join } from 'node:path';
import { skipWithout } from '../../test/integration.ts';
import { compareStates } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, NotRun, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import {
  createPeerBooks,
  PEER_CASES,
  type PeerBooks,
  type PeerCase,
  readPeerBooks,
} from './peers/books.ts';
import { PEER_CONDITIONS, type PeerCondition } from './peers/conditions.ts';

const REPETITIONS = 5;
const OURS = 'EffectMatch';

/** How one run ended, judged by the rows and not by the condition's answer. */
export interface PeerRun {
  readonly condition: string;
  readonly attempt: string;
  /** `approved`: as expected; `nothing`: only what others did; `wrong`: anything else. */
  readonly end: 'approved' | 'nothing' | 'wrong';
  readonly books: PeerBooks;
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  for (const name of ['dbhub', 'ai-sdk']) {
    const missing = skipWithout(name);
    if (missing !== false) throw new NotRun(missing);
  }
  const repetitions = quick ? 1 : REPETITIONS;
  const raw = new RawRecords(`peers${quick ? '-quick' : ''}`, []);
  const runs: PeerRun[] = [];
  for (const condition of PEER_CONDITIONS) {
    progress(condition.name);
    for (const attempt of PEER_CASES)
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        const name = [condition.name, attempt.name, repetition].join('|');
        runs.push(await raw.run(name, () => runPeer(condition, attempt)));
      }
  }
  raw.finish();
  return peerCells(runs, repetitions);
}

/** Runs one case under one condition and reads what is durable. */
export async function runPeer(condition: PeerCondition, attempt: PeerCase): Promise<PeerRun> {
  using folder = temporaryFolder();
  const [file, other] = [join(folder.path, 'books.db'), join(folder.path, 'undisturbed.db')];
  createPeerBooks(file, attempt);
  createPeerBooks(other, { ...attempt, more: `${attempt.more ?? ''}; ${attempt.meanwhile ?? ''}` });
  const initial = readPeerBooks(file);
  await condition.run(file, attempt);
  const books = readPeerBooks(file);
  const states = { initial: readPeerBooks(other), approved: attempt.expected(initial) };
  const { isApproved, isInitial } = compareStates({ ...states, durable: books });
  const end = isApproved ? 'approved' : isInitial ? 'nothing' : 'wrong';
  return { condition: condition.name, attempt: attempt.name, end, books };
}

/** Wrong results per condition and case. Only EffectMatch has a target. */
export function peerCells(runs: readonly PeerRun[], repetitions: number): readonly Cell[] {
  const places = new Map<string, PeerRun[]>();
  for (const one of runs) {
    const place = `${one.condition}: ${one.attempt}`;
    places.set(place, [...(places.get(place) ?? []), one]);
  }
  const wrong = [...places].map(([place, those]) => {
    const count = those.filter(({ end }) => end === 'wrong').length;
    const isOurs = those[0]?.condition === OURS;
    return isOurs ? exactly(place, count, 'wrong', 0) : figure(place, count, 'wrong');
  });
  const clean = runs.filter(({ attempt, end }) => attempt === 'clean' && end === 'approved');
  const conditions = new Set(runs.map(({ condition }) => condition)).size;
  return [
    ...wrong,
    exactly('clean runs that are committed', clean.length, 'runs', conditions * repetitions),
  ];
}

export const peersStudy: Study = {
  name: 'peers',
  about: 'the same faults through DBHub, AI SDK approvals, a row-count check, and plan and apply',
  run,
};
