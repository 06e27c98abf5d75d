import type { EscapeFile } from '../case.ts';
import { ATTACKS } from './attacks.ts';
import { BODIES } from './bodies.ts';
import { DRIFTED, OPENED } from './configuration.ts';
import { CONTROLS } from './controls.ts';
import { DEFERRED } from './deferred.ts';
import { DELAYED, EARLY } from './delayed.ts';
import { HIDDEN_CODE } from './hidden-code.ts';
import { MORE_BODIES } from './more-bodies.ts';
import { OVERLOADS } from './overloads.ts';
import { SEQUENCES } from './sequences.ts';
import { SCHEMA } from './shop.ts';
import { STATEMENTS, WRITES } from './statements.ts';
import { VIEWS } from './views.ts';

/** The catalogue of escapes from a PostgreSQL database, with clean controls among them. */
export const ESCAPES: EscapeFile = {
  schema: SCHEMA,
  relations: [
    'app.invoice',
    'app.line',
    'app.note',
    'app.event',
    'app.bag',
    { name: 'app.bulk', bulk: true },
  ],
  entryPoints: ['app.act', 'app.work'],
  cases: [
    ...CONTROLS,
    ...WRITES,
    ...STATEMENTS,
    ...BODIES,
    ...MORE_BODIES,
    ...DEFERRED,
    ...VIEWS,
    ...OVERLOADS,
    ...HIDDEN_CODE,
    ...EARLY,
    ...DELAYED,
    ...OPENED,
    ...DRIFTED,
    ...ATTACKS,
    ...SEQUENCES,
  ],
};
