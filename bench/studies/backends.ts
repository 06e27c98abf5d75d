// Other backends. ToolSandbox: four scenarios, clean, with an extra reminder, and with the action
// left out; GitHub.

import { join } from 'node:path';
import { approveSandbox } from '../approvals/sandbox.ts';
import { findData } from '../data/folder.ts';
import { loadSandbox, type SandboxState, TOOLSANDBOX_FILES } from '../data/toolsandbox.ts';
import { compareStates, digestOf } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, reproduced, type Study, type StudyOptions } from '../study.ts';
import { runGithub } from './backends/github.ts';
import { runDirect, runHeld, type SandboxCall } from './backends/sandbox-runs.ts';
import { passesGoal } from './backends/sandbox-tools.ts';

const REPETITIONS = 3;

/**
 * An action needs at least one call, so this call, which changes nothing, replaces a scenario's
 * call that is left out.
 */
const LOOK: SandboxCall = { tool: 'get_current_timestamp', args: {} };

interface Run {
  readonly variant: string;
  readonly condition: string;
  readonly committed: boolean;
  readonly isApproved: boolean;
  readonly isInitial: boolean;
  readonly passesGoal: boolean;
}

async function run({ quick, data, progress }: StudyOptions): Promise<readonly Cell[]> {
  const folder = findData(data, TOOLSANDBOX_FILES);
  const raw = new RawRecords(
    `backends${quick ? '-quick' : ''}`,
    TOOLSANDBOX_FILES.map((file) => join(folder, file)),
  );
  const { initial, now, scenarios } = loadSandbox(folder);
  const remind: SandboxCall = {
    tool: 'add_reminder',
    args: { content: 'Call back', reminder_timestamp: now + 3600 },
  };
  const repetitions = quick ? 1 : REPETITIONS;
  const runs: Run[] = [];
  for (const { name, request, tool, args } of scenarios) {
    progress(name);
    const approved = approveSandbox(request, initial);
    const variants = {
      clean: [{ tool, args }],
      'extra reminder': [{ tool, args }, remind],
      'omitted action': [LOOK],
    };
    for (const [variant, calls] of Object.entries(variants)) {
      for (const condition of ['direct', 'EffectMatch']) {
        for (let repetition = 1; repetition <= repetitions; repetition += 1) {
          const facts = { scenario: name, variant, condition };
          const record = await raw.run(
            [...Object.values(facts), repetition].join('|'),
            async () => {
              const isDirect = condition === 'direct';
              const end = isDirect
                ? runDirect(initial, calls, now)
                : await runHeld(initial, calls, now, approved);
              return {
                ...facts,
                repetition,
                calls,
                committed: end.committed,
                ...compareStates({ initial, approved, durable: end.durable }, (state) =>
                  digestOf(rowsInOrder(state)),
                ),
                passesGoal: passesGoal(name, initial, end.durable),
              };
            },
          );
          runs.push(record);
        }
      }
    }
  }
  const github = await runGithub(raw, { quick, progress });
  raw.finish();
  const all = scenarios.length * repetitions;
  const count = (condition: string, variant: string, holds: (run: Run) => boolean) =>
    runs.filter((one) => one.condition === condition && one.variant === variant && holds(one))
      .length;
  const cell = (name: string, value: number) =>
    quick
      ? exactly(`ToolSandbox, ${name}`, value, 'runs', all)
      : reproduced(`ToolSandbox, ${name}`, value, 'runs', 12);
  // The paper has no figures for these.
  const own = (name: string, value: number) => exactly(`ToolSandbox, ${name}`, value, 'runs', all);
  const isRight = ({ committed, isApproved }: Run) => committed && isApproved;
  const isWrong = ({ committed, isApproved }: Run) => committed && !isApproved;
  const isStopped = ({ committed, isInitial }: Run) => !committed && isInitial;
  return [
    cell('EffectMatch: clean, committed', count('EffectMatch', 'clean', isRight)),
    cell(
      'EffectMatch: extra reminder, rejected',
      count('EffectMatch', 'extra reminder', isStopped),
    ),
    cell(
      'EffectMatch: omitted action, rejected',
      count('EffectMatch', 'omitted action', isStopped),
    ),
    own('direct: clean, right state', count('direct', 'clean', isRight)),
    own('direct: extra reminder, wrong commit', count('direct', 'extra reminder', isWrong)),
    own('direct: omitted action, wrong commit', count('direct', 'omitted action', isWrong)),
    cell(
      'direct: extra reminder, goal check passed',
      count('direct', 'extra reminder', (one) => one.passesGoal),
    ),
    ...github,
  ];
}

/** Rows in any order are the same state, because the original moves changed rows to the end. */
function rowsInOrder(state: SandboxState) {
  return Object.fromEntries(
    Object.entries(state).map(([table, rows]) => [table, rows.map(digestOf).sort()]),
  );
}

export const backendsStudy: Study = {
  name: 'backends',
  about: 'four ToolSandbox scenarios and eight GitHub operations, clean and disturbed',
  run,
};
