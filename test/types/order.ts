// Goal: the order of the execution path is a type: no step can be called without the proof of the
// step before. Method: compiled only; every line below must fail to compile for the reason beside
// it.
import type { PromotableAdapter, RemoteAdapter, Stage } from '../../src/contract/adapter.ts';
import type {
  Certificate,
  Claim,
  ConsumedPermit,
  RequestPermit,
} from '../../src/contract/proof.ts';
import type { CertificateRecord } from '../../src/protocol/boundary.ts';
import type { PermitRecord } from '../../src/protocol/permit.ts';
import type { Digest } from '../../src/protocol/record.ts';

declare const adapter: PromotableAdapter<string>;
declare const remote: RemoteAdapter<string>;
declare const stage: Stage;
declare const claim: Claim;
declare const certificate: Certificate;
declare const permit: ConsumedPermit;
declare const requestPermit: RequestPermit;
declare const record: PermitRecord;
declare const certificateRecord: CertificateRecord;
declare const digest: Digest;

/** In order, everything compiles. */
export const inOrder = [
  () => adapter.stage(claim, certificate, 'action'),
  () => stage.promote(permit),
  () => remote.dispatch(requestPermit, { content: null }),
];

export const outOfOrder = [
  // @ts-expect-error a stage cannot open before the occurrence is claimed
  () => adapter.stage(undefined, certificate, 'action'),
  // @ts-expect-error a stage cannot open before the boundary is certified
  () => adapter.stage(claim, undefined, 'action'),
  // @ts-expect-error a certificate is no claim
  () => adapter.stage(certificate, certificate, 'action'),
  // @ts-expect-error the content of a certificate is not the proof that there is one
  () => adapter.stage(claim, { record: certificateRecord, digest }, 'action'),
  // @ts-expect-error a candidate cannot be promoted without a consumed permit
  () => stage.promote(),
  // @ts-expect-error a claim is no permit
  () => stage.promote(claim),
  // @ts-expect-error the content of a permit is not the proof that the gate was passed
  () => stage.promote({ record, digest, marker: permit.marker }),
  // @ts-expect-error a request's permit does not promote a candidate
  () => stage.promote(requestPermit),
  // @ts-expect-error a candidate's permit does not send a request
  () => remote.dispatch(permit, { content: null }),
  // @ts-expect-error nothing is sent before the permit is consumed
  () => remote.dispatch({ record, digest }, { content: null }),
  // @ts-expect-error an adapter that sends requests holds no candidates
  () => remote.stage(claim, certificate, 'action'),
];
