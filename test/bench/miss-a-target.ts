// Loaded before the bench command: makes one study return a count that misses its target.
import { compareStudy } from '../../bench/studies/compare.ts';
import { exactly } from '../../bench/study.ts';

Object.assign(compareStudy, { run: async () => [exactly('wrong on purpose', 1, 'runs', 2)] });
