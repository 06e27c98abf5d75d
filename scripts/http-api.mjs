// Writes the list of endpoints in docs/api.md from the OpenAPI document, which is made from the
// schemas of the records. test/api/document.test.ts compares.
//   node scripts/http-api.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ENDPOINTS } from '../src/api/app.ts';
import { openApiOf } from '../src/api/openapi.ts';

const PAGE = resolve(import.meta.dirname, '../docs/api.md');
const HEADING = '## Endpoints\n';

/** The page with the list of endpoints as it must be now. */
export function withEndpoints(page) {
  const [before] = page.split(HEADING);
  const { paths } = openApiOf(ENDPOINTS, '');
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  );
  const groups = [...new Set(operations.map(({ tags: [group] }) => group))];
  const sections = groups.map((group) => {
    const rows = operations.filter(({ tags }) => tags[0] === group).map(rowOf);
    return `### ${group}\n\n| call | what it does | scope | answers |\n|---|---|---|---|\n${rows.join('\n')}\n`;
  });
  return `${before}${HEADING}\n${sections.join('\n')}`;
}

function rowOf({ path, method, summary, description, parameters, responses }) {
  const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const asked = query.length === 0 ? '' : `?${query.join('&')}`;
  const [, scope = 'no token'] = /Scope: (.*)\.$/.exec(description) ?? [];
  const more = description.split('\n\n').length > 1 ? `. ${description.split('\n\n')[0]}` : '';
  const about = `${summary}${more}`.replaceAll('\n', ' ').replaceAll('|', '\\|');
  const statuses = Object.keys(responses).filter((status) => !COMMON.includes(status));
  return `| \`${method.toUpperCase()} ${path}${asked}\` | ${about} | ${scope} | ${statuses.join(', ')} |`;
}
/** What the page says about all of them. */
const COMMON = ['401', '403', '408', '413', '415', '421', '429'];

if (process.argv[1] === import.meta.filename)
  writeFileSync(PAGE, withEndpoints(readFileSync(PAGE, 'utf8')));
