import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { EscapeRun } from './runner.ts';

const FILE = fileURLToPath(new URL('./results.json', import.meta.url));

/** How every case of the catalogue ended when the whole of it was last run and kept. */
export interface Evidence {
  readonly postgres: string;
  readonly cases: readonly {
    readonly name: string;
    /** What had to happen, and the words that had to explain it. */
    readonly expected: string;
    readonly found: string;
  }[];
}

/** A run as evidence: nothing in it depends on the moment or the machine. */
export function evidenceOf({ version, results }: EscapeRun): Evidence {
  return {
    postgres: version,
    cases: results.map(({ name, expected, found }) => ({ name, expected, found })),
  };
}

export function readEvidence(): Evidence {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Evidence;
}

/** One case per line, so that a change of one is one line of a review. */
export function writeEvidence({ postgres, cases }: Evidence): string {
  const lines = cases.map((one) => `    ${JSON.stringify(one)}`).join(',\n');
  writeFileSync(
    FILE,
    `{\n  "postgres": ${JSON.stringify(postgres)},\n  "cases": [\n${lines}\n  ]\n}\n`,
  );
  return FILE;
}

/** What differs from the kept evidence, in words; nothing when the run found the same. */
export function compareEvidence(kept: Evidence, now: Evidence): readonly string[] {
  const before = new Map(kept.cases.map((one) => [one.name, one]));
  const after = new Set(now.cases.map(({ name }) => name));
  return [
    ...(kept.postgres === now.postgres
      ? []
      : [`PostgreSQL is ${now.postgres}, was ${kept.postgres}`]),
    ...now.cases.flatMap(({ name, expected, found }) => {
      const known = before.get(name);
      if (known === undefined) return [`new case: ${name}`];
      const same = known.expected === expected && known.found === found;
      return same
        ? []
        : [
            `${name}: ${found} (expected ${expected}), was ${known.found} (expected ${known.expected})`,
          ];
    }),
    ...kept.cases.filter(({ name }) => !after.has(name)).map(({ name }) => `case is gone: ${name}`),
  ];
}
