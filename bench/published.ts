// The figures that the docs quote: those of each study's last complete run, committed with the
// project. `npm run bench -- publish` takes them from the results and rewrites the tables in the
// docs. A test fails if a page shows other figures.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { cellsOf, type Entry } from './report/verdict.ts';
import { cell, type WrittenCell } from './results.ts';

const FILE = 'bench/published.json';

const study = z.strictObject({
  study: z.string(),
  /** When and where the study ran; null if the figures were copied from the docs by hand. */
  run: z
    .strictObject({
      at: z.string(),
      node: z.string(),
      cpu: z.string(),
      cores: z.int(),
      /** How long it took; absent for figures that were published before this was kept. */
      seconds: z.number().optional(),
      /** Where the study had its files; absent for figures from before this was kept. */
      files: z.enum(['disk', 'memory']).optional(),
    })
    .nullable(),
  cells: z.array(cell),
});

/** The quoted figures of one study. */
export type PublishedStudy = z.infer<typeof study>;

export function readPublished(file = FILE): readonly PublishedStudy[] {
  if (!existsSync(file)) return [];
  return z.array(study).parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** Merges the new figures. A study without a complete run keeps its older figures. */
export function mergePublished(
  known: readonly PublishedStudy[],
  entries: readonly Entry[],
): readonly PublishedStudy[] {
  return entries.flatMap((entry): readonly PublishedStudy[] => {
    const { result } = entry;
    const older = known.filter((one) => one.study === entry.name);
    if (result === undefined || result.context.quick || !('cells' in result)) return older;
    const { at, node, cpu, cores, seconds, files } = result.context;
    const run = { at, node, cpu, cores, seconds, ...(files && { files }) };
    return [{ study: entry.name, run, cells: [...cellsOf(entry)] }];
  });
}

/** Writes one figure per line, so that a changed figure is a one-line diff. */
export function writePublished(published: readonly PublishedStudy[]): string {
  const studies = published.map(({ study: name, run, cells }) => {
    const lines = cells.map((one) => `    ${JSON.stringify(one)}`);
    return `  {"study": ${JSON.stringify(name)}, "run": ${JSON.stringify(run)}, "cells": [\n${lines.join(',\n')}\n  ]}`;
  });
  writeFileSync(FILE, `[\n${studies.join(',\n')}\n]\n`);
  return FILE;
}

/** Finds a figure of a study by its name. */
export function findPublished(
  published: readonly PublishedStudy[],
  name: string,
  figure: string,
): WrittenCell | undefined {
  const found = published.find((one) => one.study === name);
  return found?.cells.find((one) => one.name === figure);
}
