import { errorsOf } from '../errors.ts';
import { MAX_DEPTH } from '../protocol/canon.ts';
import { scanJson } from '../protocol/json-text.ts';
import { copyOnce, type Schema } from '../protocol/schema.ts';
import type { BodyOf } from './endpoint.ts';
import { ApiRefusal } from './problem.ts';

const MAX_BYTES = 1024 * 1024;

/** Reads the text of a body, within the limits on size, time and depth. */
export async function readText(
  request: Request,
  { maxBytes = MAX_BYTES }: BodyOf<unknown>,
  receiveMs: number,
): Promise<string> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json')
    throw new ApiRefusal(415, 'ERR_EM_INPUT_INVALID', 'send the body as application/json');
  const said = Number(request.headers.get('content-length') ?? 0);
  if (said > maxBytes) throw tooLarge(maxBytes);
  const text = decode(await receive(request, maxBytes, receiveMs));
  if (scanJson(text).depth > MAX_DEPTH)
    throw invalid(`it is nested more than ${MAX_DEPTH} levels deep`);
  return text;
}

/** Parses JSON and checks it against a schema. */
export function readJson<T>(schema: Schema<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid('it is not JSON');
  }
  const found = copyOnce(schema, value, Number.POSITIVE_INFINITY);
  if ('copy' in found) return found.copy;
  const where = found.path.length === 0 ? 'it' : found.path.join('.');
  throw invalid(`${where} ${found.why}`);
}

async function receive(request: Request, maxBytes: number, receiveMs: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reader?.cancel().catch(() => {});
  }, receiveMs);
  try {
    for (;;) {
      const { done = true, value } = (await reader?.read()) ?? {};
      if (isLate) throw tooSlow(receiveMs);
      if (done || value === undefined) return Buffer.concat(chunks);
      size += value.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(value);
    }
  } finally {
    clearTimeout(timer);
    await reader?.cancel().catch(() => {});
  }
}

/** Refuses invalid UTF-8: an approver must read exactly what was sent. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('it is not UTF-8');
  }
}

function tooSlow(receiveMs: number): ApiRefusal {
  const message = `a body must arrive within ${receiveMs / 1000} seconds`;
  return new ApiRefusal(408, 'ERR_EM_INPUT_INVALID', message);
}

function tooLarge(maxBytes: number): ApiRefusal {
  const message = `a body has at most ${maxBytes} bytes`;
  return new ApiRefusal(413, 'ERR_EM_RECORD_TOO_LARGE', message);
}

const invalid = errorsOf('ERR_EM_INPUT_INVALID', 'the body cannot be used: ');
