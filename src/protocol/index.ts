/** Records, effects and comparison, without any I/O: what another implementation or a verifier needs. @module */
export { canonical } from './canon.ts';
