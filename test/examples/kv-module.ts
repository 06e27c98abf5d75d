import { keyValue } from '../../examples/kv-adapter/adapter.ts';

export default (file: string) => keyValue({ file });
