// npm run escapes -- [--cases <file.json|file.ts>] [--version 15|17] [--only <text>] [--json]
// Exit code 0 when every case ended as it must and nothing unapproved became durable; 1 otherwise.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { EscapeFile, EscapeResult } from './case.ts';
import { runEscapes } from './runner.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: 'test/escapes/cases/postgres.ts' },
    version: { type: 'string', default: '17' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
});

async function readCases(path: string): Promise<EscapeFile> {
  if (path.endsWith('.json')) return JSON.parse(readFileSync(path, 'utf8')) as EscapeFile;
  const module = (await import(pathToFileURL(resolve(path)).href)) as { readonly ESCAPES: EscapeFile };
  return module.ESCAPES;
}

function printResult({ ok, name, expected, found, detail, violation }: EscapeResult): void {
  const verdict = violation ? 'VIOLATION' : ok ? 'ok' : 'OTHER';
  console.log(`${verdict.padEnd(9)}  ${name.padEnd(70)}  ${found}`);
  if (!ok) console.log(`           expected ${expected}: ${violation ?? detail.slice(0, 400)}`);
}

const file = await readCases(values.cases);
const cases = file.cases.filter(({ name }) => name.includes(values.only));
const version = values.version === '15' ? 15 : 17;
const results = await runEscapes({ ...file, cases }, { version, report: values.json ? () => {} : printResult });
const counts: Record<string, number> = {};
for (const { found } of results) {
  const kind = found.split(' ')[0] ?? '';
  counts[kind] = (counts[kind] ?? 0) + 1;
}
const violations = results.filter((result) => result.violation !== undefined).length;
const others = results.filter(({ ok }) => !ok).length;
console.log(
  JSON.stringify({
    version,
    cases: results.length,
    ...counts,
    others,
    violations,
    ...(values.json ? { results } : {}),
  }),
);
process.exitCode = others > 0 ? 1 : 0;
