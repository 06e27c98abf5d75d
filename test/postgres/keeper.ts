// The keeper process of a PostgreSQL server.
import { Cluster } from './cluster.ts';
import { keep } from './keeper-loop.ts';

keep(() => new Cluster());
