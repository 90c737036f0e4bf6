/** Tables and charts by several labels at once: the server reads the samples once for all of them. */
import { ApiError, api, type Facet, type Parameters } from "../../api/index.ts";

/** What roll-ups do not have. */
const OF_SAMPLES = ["thread", "tid", "tgid", "cpu"];

export type Facets = Partial<Record<string, Facet>>;

/** By label; where only roll-ups are left, without those that need single samples. */
export async function facetsBy(
  labels: readonly string[],
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Facets> {
  const asked = async (by: readonly string[]) => {
    const { facets } = await api.facets({ ...parameters, by: by.join(",") }, signal);
    return Object.fromEntries(facets.map((facet) => [facet.by, facet]));
  };
  try {
    return await asked(labels);
  } catch (error) {
    const left = labels.filter((label) => !OF_SAMPLES.includes(label));
    const isRefused = error instanceof ApiError && error.code === "bad_parameter";
    if (isRefused && left.length < labels.length && left.length > 0) return asked(left);
    throw error;
  }
}
