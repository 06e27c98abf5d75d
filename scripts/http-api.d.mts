/** The page with the list of endpoints as it must be now. */
export function withEndpoints(page: string): string;
