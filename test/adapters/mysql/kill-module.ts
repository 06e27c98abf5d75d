import { type MysqlOptions, mysql } from '../../../src/adapters/mysql/index.ts';

export default (options: string) => mysql(JSON.parse(options) as MysqlOptions);
