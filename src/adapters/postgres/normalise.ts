export async function normaliseManifest(_t: any, m: any): Promise<any> {
  return m;
}
