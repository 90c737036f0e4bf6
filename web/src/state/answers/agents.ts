/** The agents that the server knows. */
import { api } from "../../api/index.ts";
import { ask } from "../question/question.ts";
import { resource } from "../question/resource.ts";

/** Asked for on every view: agents that are late make every answer less than it seems. */
export const nodes = resource(() => ask("nodes", {}, (signal) => api.nodes(signal)));
