// The figures that the pages quote: those of the last complete run of each study, kept with the
// project. `npm run bench -- publish` takes them from the results and writes the tables of the
// pages again; a test fails when a page says anything else.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { cellsOf, type Entry } from './report/verdict.ts';
import { cell, type WrittenCell } from './results.ts';

const FILE = 'bench/published.json';

const study = z.strictObject({
  study: z.string(),
  /** When and with what it ran; null for a figure that was taken over from the pages by hand. */
  run: z
    .strictObject({ at: z.string(), node: z.string(), cpu: z.string(), cores: z.int() })
    .nullable(),
  cells: z.array(cell),
});

/** The figures of one study as they are quoted. */
export type PublishedStudy = z.infer<typeof study>;

export function readPublished(file = FILE): readonly PublishedStudy[] {
  if (!existsSync(file)) return [];
  return z.array(study).parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** What is quoted after this run: a study that did not run completely keeps its older figures. */
export function mergePublished(
  known: readonly PublishedStudy[],
  entries: readonly Entry[],
): readonly PublishedStudy[] {
  return entries.flatMap((entry): readonly PublishedStudy[] => {
    const { result } = entry;
    const older = known.filter((one) => one.study === entry.name);
    if (result === undefined || result.context.quick || !('cells' in result)) return older;
    const { at, node, cpu, cores } = result.context;
    return [{ study: entry.name, run: { at, node, cpu, cores }, cells: [...cellsOf(entry)] }];
  });
}

/** One figure per line, so that a change of one reads as a change of one. */
export function writePublished(published: readonly PublishedStudy[]): string {
  const studies = published.map(({ study: name, run, cells }) => {
    const lines = cells.map((one) => `    ${JSON.stringify(one)}`);
    return `  {"study": ${JSON.stringify(name)}, "run": ${JSON.stringify(run)}, "cells": [\n${lines.join(',\n')}\n  ]}`;
  });
  writeFileSync(FILE, `[\n${studies.join(',\n')}\n]\n`);
  return FILE;
}

/** The figure of a study by its name. */
export function findPublished(
  published: readonly PublishedStudy[],
  name: string,
  figure: string,
): WrittenCell | undefined {
  const found = published.find((one) => one.study === name);
  return found?.cells.find((one) => one.name === figure);
}
