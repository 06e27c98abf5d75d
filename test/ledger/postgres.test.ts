// Goal: the PostgreSQL ledgers keep every promise of the port, also across processes and after a
// kill. Method: the conformance suite on a real server, with real processes.
import { after } from 'node:test';
import { ledgerConformance } from '../../src/testing/ledger-conformance.ts';
import { ledgerDatabase, postgresKit } from './postgres-store.ts';

after(async () => await (await ledgerDatabase()).drop());

ledgerConformance('postgres', postgresKit);
