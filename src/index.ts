export { EffectMatchError, type ErrorCode } from './errors.ts';
