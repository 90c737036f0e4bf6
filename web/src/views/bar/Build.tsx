/** Says where the server that answers is not built for speed: nobody is to judge it by that. */
import { buildText } from "../../logic/agents/build.ts";
import { info } from "../../state/answers/server.ts";

export function Build() {
  const text = buildText(info.data.value?.build_profile ?? "");
  if (text === null) return null;
  return (
    <span class="dim build" title={text.hint} data-testid="build">
      {text.name}
    </span>
  );
}
