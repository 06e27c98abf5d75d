// Loaded before the bench command: makes one study return a count that misses its target, and one
// that counts judge a time.
import { compareStudy } from '../../bench/studies/compare.ts';
import { informationStudy } from '../../bench/studies/information.ts';
import { atMost, exactly } from '../../bench/study.ts';

Object.assign(compareStudy, { run: async () => [exactly('wrong on purpose', 1, 'runs', 2)] });
Object.assign(informationStudy, { run: async () => [atMost('timed on purpose', 1, 'ms', 2)] });
