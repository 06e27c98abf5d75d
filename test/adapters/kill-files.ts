import { files } from '../../src/adapters/files/index.ts';

export default (root: string) => files({ root, adopt: true });
