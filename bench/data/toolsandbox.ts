// Four ToolSandbox scenarios. The README next to the data explains what the tools do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

export const TOOLSANDBOX_FILES = [
  'toolsandbox/initial-state.json',
  'toolsandbox/scenarios.json',
] as const;

const cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const row = z.record(z.string(), cell);
const table = z.object({ key: z.array(z.string()).nullable(), rows: z.array(row) });
const stateFile = z.object({
  clock: z.object({ t0: z.number() }),
  tables: z.strictObject({ SETTING: table, CONTACT: table, MESSAGING: table, REMINDER: table }),
});
const scenarioFile = z.object({
  scenarios: z.array(
    z.object({
      name: z.string(),
      request: z.string(),
      tool: z.string(),
      arguments: row,
      approved_changes: z.json(),
    }),
  ),
});

export type SandboxRow = z.infer<typeof row>;
/** The four business tables as lists of rows. */
export type SandboxState = {
  readonly [table in 'SETTING' | 'CONTACT' | 'MESSAGING' | 'REMINDER']: SandboxRow[];
};

export interface SandboxScenario {
  readonly name: string;
  readonly request: string;
  readonly tool: string;
  readonly args: SandboxRow;
}

/**
 * Loads the initial state, its clock and the scenarios, without the data's own approved changes.
 */
export function loadSandbox(folder: string) {
  const { clock, tables } = stateFile.parse(
    JSON.parse(readFileSync(join(folder, TOOLSANDBOX_FILES[0]), 'utf8')),
  );
  const { scenarios } = scenarioFile.parse(
    JSON.parse(readFileSync(join(folder, TOOLSANDBOX_FILES[1]), 'utf8')),
  );
  const initial: SandboxState = {
    SETTING: tables.SETTING.rows,
    CONTACT: tables.CONTACT.rows,
    MESSAGING: tables.MESSAGING.rows,
    REMINDER: tables.REMINDER.rows,
  };
  return {
    initial,
    now: clock.t0,
    scenarios: scenarios.map(({ name, request, tool, arguments: args }) => ({
      name,
      request,
      tool,
      args,
    })),
  };
}
