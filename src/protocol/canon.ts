export function canonical(_value: unknown): string {
  throw new Error('to be written');
}
