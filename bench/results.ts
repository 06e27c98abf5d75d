import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { resultsFolder } from './raw.ts';

/** One figure. */
export const cell = z.strictObject({
  name: z.string(),
  value: z.number().nullable(),
  unit: z.string(),
  target: z.string().optional(),
  paper: z.number().optional(),
  ok: z.boolean(),
});
const context = z.strictObject({
  node: z.string(),
  cpu: z.string(),
  cores: z.int(),
  at: z.string(),
  seconds: z.number(),
  quick: z.boolean(),
  seed: z.int(),
  /** What the seed decided; null if the study draws nothing at random. */
  seeded: z.string().nullable(),
  /** Fingerprint of the code that made the figures. */
  code: z.string(),
  /** Where the study had its files; absent if nobody recorded it. */
  files: z.enum(['disk', 'memory']).optional(),
});
const result = z.union([
  z.strictObject({ study: z.string(), context, cells: z.array(cell) }),
  z.strictObject({ study: z.string(), context, notRun: z.string() }),
  z.strictObject({ study: z.string(), context, failed: z.string() }),
]);

/** How a study last ended: with figures, not run because something is missing, or failed. */
export type StudyResult = z.infer<typeof result>;
/**
 * A figure as read from its file. JSON cannot represent NaN, so NaN is read as null.
 */
export type WrittenCell = z.infer<typeof cell>;

/**
 * A quick run has a separate file, so that trying out a study does not overwrite a measurement.
 */
function fileOf(study: string, quick: boolean): string {
  return join(resultsFolder(), `${study}${quick ? '-quick' : ''}.json`);
}

/**
 * Describes the machine, the time and how the study was run. `code` is the fingerprint from before
 * the run.
 */
export function describeContext(
  how: Omit<StudyResult['context'], 'node' | 'cpu' | 'cores' | 'at'>,
): StudyResult['context'] {
  return {
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    at: new Date().toISOString(),
    ...how,
  };
}

/** Writes the result atomically and returns the file's name. */
export function writeResult(written: StudyResult): string {
  const file = fileOf(written.study, written.context.quick);
  mkdirSync(resultsFolder(), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(written, null, 2)}\n`);
  renameSync(`${file}.new`, file);
  return file;
}

/** The last result of a study, if it has one that this version can read. */
export function readResult(study: string, quick: boolean): StudyResult | undefined {
  const file = fileOf(study, quick);
  if (!existsSync(file)) return undefined;
  const parsed = result.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  return parsed.success && parsed.data.study === study ? parsed.data : undefined;
}
