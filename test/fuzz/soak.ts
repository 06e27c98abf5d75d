// Fuzzes every parser for as many rounds as asked: node test/fuzz/soak.ts --rounds 1000 --seed abc
import { parseArgs } from 'node:util';
import { chooseSeed } from '../random.ts';
import { runCampaign } from './campaign.ts';
import { openSubjects } from './subjects.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
const rounds = Number(values.rounds);
if (!Number.isSafeInteger(rounds) || rounds < 1)
  throw new Error('--rounds takes a whole number from 1 on');
const seed = chooseSeed(values.only?.split('/')[0] ?? values.seed);
console.log(`seed ${seed}, ${rounds} rounds`);
using opened = await openSubjects();
const { inputs, tallies, heap } = runCampaign(opened.subjects, seed, rounds, values.only);
for (const [name, { accepted, codes, ...tally }] of tallies) {
  const refusals = [...codes].map(([code, count]) => `${code} ${count}`).join(', ');
  console.log(`${name}: ${tally.inputs} inputs, ${accepted} accepted, ${refusals}`);
}
console.log(`${inputs} inputs; heap ${heap.warm} bytes when warm, ${heap.end} at the end`);
