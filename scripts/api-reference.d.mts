/** The pages of the API reference for a built package, and the exports that say nothing about themselves. */
export function makeReference(home: string): {
  readonly pages: readonly { readonly file: string; readonly text: string }[];
  readonly undocumented: readonly string[];
};
