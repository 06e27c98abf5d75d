import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fingerprintOf, readRaw, readSamples, resultsFolder } from '../raw.ts';
import { readResult } from '../results.ts';
import type { Study } from '../study.ts';
import { renderMarkdown } from './markdown.ts';
import { renderPage } from './page.ts';
import type { Entry } from './verdict.ts';

/** The folder next to the results, by default `bench/report`. */
function reportFolder(): string {
  return join(dirname(resultsFolder()), 'report');
}

/**
 * Collects every study with its last result, preferably of a complete run. `quick` prefers quick
 * runs instead, for the report after a quick run.
 */
export function gatherEntries(
  studies: readonly Pick<Study, 'name' | 'about'>[],
  quick: boolean,
): readonly Entry[] {
  const code = fingerprintOf([]);
  return studies.map(({ name, about }) => {
    const result = readResult(name, quick) ?? readResult(name, !quick);
    const isStale = result !== undefined && result.context.code !== code;
    const records = result === undefined ? undefined : readRaw(name, result.context.quick);
    const samples = result && readSamples(name, result.context.quick);
    const hasNone = records === undefined && samples === undefined;
    const raw = hasNone
      ? undefined
      : { records: records ?? [], ...(samples !== undefined && { samples }) };
    return { name, about, result, isStale, raw };
  });
}

/** Writes both forms of the report and returns the names of the files. */
export function writeReport(entries: readonly Entry[]): readonly string[] {
  const folder = reportFolder();
  mkdirSync(folder, { recursive: true });
  const files = { 'index.html': renderPage(entries), 'report.md': renderMarkdown(entries) };
  return Object.entries(files).map(([name, text]) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  });
}
