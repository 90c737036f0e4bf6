/** Where the server answers what: addresses to ask, and for links to download. */
export const ROOT = "/api/v1";

export type Parameters = Record<string, string | number | null | undefined>;

/** The address of a resource; parameters that are empty are left out. Also what download links point at. */
export function address(path: string, parameters: Parameters): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? `${ROOT}${path}` : `${ROOT}${path}?${text}`;
}
