// The engine with the real class: it has every method that the engine asks for.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { dbosEngine } from 'effectmatch/workflow/dbos';

/** An engine on the database that DBOS uses. */
export const engineOn = (url: string) => dbosEngine({ DBOS, url });
