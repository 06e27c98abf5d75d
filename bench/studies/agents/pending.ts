import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { atMost, type Cell, medianCell, type StudyOptions } from '../../study.ts';
import type { Site } from './site.ts';

const FEW = 1000;

/** Measures listing the pending requests, when there are few and when there are very many. */
export async function measureListing(
  site: Site,
  { quick, progress }: StudyOptions,
): Promise<readonly Cell[]> {
  const many = quick ? 10_000 : 100_000;
  await using opened = await site.open();
  const { requests } = opened;
  const input = { payee: 'someone', amount: 1 };
  await requests.ask({ by: 'asker', run: 'study', operation: 'pay_2', input });
  const times: number[][] = [];
  for (const count of [FEW, many]) {
    progress(`${count} pending requests`);
    fill(join(site.folder, 'requests.db'), count);
    const samples: number[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      const begun = performance.now();
      const page = await requests.list({ state: 'pending', limit: 50 });
      samples.push(performance.now() - begun);
      if (page.length !== 50) throw new Error(`a page of ${page.length}`);
    }
    times.push(samples);
  }
  const [few = [], very = []] = times;
  return [
    medianCell(`first page of ${FEW} pending`, few, 'ms'),
    medianCell(`first page of ${many} pending`, very, 'ms'),
    atMost(
      'first page of very many pending over few',
      { statistic: 'ratio', of: very, to: few },
      'x',
      2,
    ),
  ];
}

/** Copies one real request, because making so many would take hours. */
function fill(file: string, count: number): void {
  using db = new DatabaseSync(file);
  const columns = db.prepare("select name from pragma_table_info('request')").all();
  const copied = columns.map(({ name }) => {
    if (name === 'id') return "printf('req_%040d', n)";
    return name === 'askedMs' ? 'askedMs + n' : `r."${name}"`;
  });
  const names = columns.map(({ name }) => `"${name}"`).join(', ');
  db.exec(`insert or ignore into request (${names})
    with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ${count})
    select ${copied.join(', ')} from counted
    join (select * from request where operation = 'pay_2' order by askedMs limit 1) as r`);
}
