import { sqlite } from '../../src/adapters/sqlite/index.ts';

export default (file: string) => sqlite({ file, relations: ['t'] });
