// The keeper process of a MariaDB server.
import { keep } from '../postgres/keeper-loop.ts';
import { MariadbCluster } from './cluster.ts';

keep(() => new MariadbCluster());
