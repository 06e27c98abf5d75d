import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { EffectMatchError, renderTerminal, type Terminal } from '../../index.ts';
import { toneOf } from '../journal-entries.ts';
import { type Output, printable, type Tone, wrap } from '../output.ts';
import { type Answer, askWorker, type Role } from './ask-worker.ts';
import { Desk } from './desk.ts';
import type { Sandbox } from './sandbox.ts';

/** One act: a title, and what is really done. */
export interface Act {
  readonly title: string;
  play(stage: ActStage): Promise<void>;
}

/** What an act works with. */
export interface ActStage {
  readonly desk: Desk;
  /** The act's own folder. */
  readonly folder: string;
  /** A few lines for the audience; `about` says who or what they are about. */
  tell(about: string, text: string, tone?: Tone): void;
  /** Tells a verdict as it was recorded. */
  judge(terminal: Terminal): void;
  /** Tells what is durable, as seen from outside, and what that means. */
  look(meaning: string): ReturnType<Desk['look']>;
  /** Checks reality against the story. A demo that is not true must not go on. */
  expect(what: string, found: unknown, expected: unknown): void;
  ask<R extends Role>(role: R): Promise<Answer<R>>;
}

/** An act as data, for `--json`. */
export interface ActReport {
  readonly act: number;
  readonly title: string;
  readonly told: { readonly about: string; readonly text: string }[];
  readonly terminals: Terminal[];
  readonly checks: { readonly what: string; readonly found: unknown }[];
}

const WIDTH = 100;
const LABEL = 11;
const MARGIN = 3;

/** Plays one act in a folder of its own, telling it while it happens. */
export async function playAct(sandbox: Sandbox, number: number, act: Act, output: Output): Promise<ActReport> {
  const folder = join(sandbox.folder, `act-${number}`);
  mkdirSync(folder);
  const desk = new Desk(folder);
  const report: ActReport = { act: number, title: act.title, told: [], terminals: [], checks: [] };
  const tell = (about: string, text: string, tone: Tone = 'plain') => {
    report.told.push({ about, text });
    for (const [index, line] of wrap(printable(text), WIDTH - MARGIN - LABEL).entries()) {
      const label = (index === 0 ? about : '').padEnd(LABEL);
      output.line(`${' '.repeat(MARGIN)}${output.paint('dim', label)}${output.paint(tone, line)}`);
    }
  };
  output.line();
  output.line(output.paint('strong', `${number}. ${act.title}`));
  await act.play({
    desk,
    folder,
    tell,
    judge(terminal) {
      report.terminals.push(terminal);
      const text = renderTerminal(terminal).replace(/^[a-z]+/, (verdict) => verdict.toUpperCase());
      tell('verdict', text, toneOf(terminal.kind));
    },
    look(meaning) {
      const { status, notifications } = desk.look();
      tell('database', `invoice 4711 is "${status}", notifications: ${notifications}   (${meaning})`);
      return { status, notifications };
    },
    expect(what, found, expected) {
      report.checks.push({ what, found });
      if (isDeepStrictEqual(found, expected)) return;
      throw new EffectMatchError(
        'ERR_EM_INVARIANT',
        `act ${number} came out wrong: ${what} is ${JSON.stringify(found)} and should be ${JSON.stringify(expected)}`,
      );
    },
    ask: (role) => askWorker(sandbox, role, folder),
  });
  return report;
}
