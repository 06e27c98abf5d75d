/** Adapters for HTTP services: mediated, opaque, and services that keep drafts. @module */
import '../../node-version.ts';

export { type DraftAction, draftHttp } from './drafts.ts';
export { type MediatedAction, mediatedHttp } from './mediated.ts';
export { type OpaqueAction, opaqueHttp } from './opaque.ts';
export type {
  DraftContent,
  DraftOptions,
  HttpOperation,
  HttpOptions,
  MediatedOperation,
  MediatedOptions,
  OpaqueOperation,
  OpaqueOptions,
  Plan,
  PlannedEffect,
  ReadBackOptions,
  ReadBackResult,
  RequestParts,
  ServiceOptions,
  TargetOptions,
} from './options.ts';
