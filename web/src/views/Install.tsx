/** How to add a machine: the line to run there, and what to know where the server asks for more. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { CA_FILE, withAuthority } from "../logic/install.ts";
import { info } from "../state/data.ts";
import { copyText } from "./clipboard.ts";
import { Menu } from "./Menu.tsx";

export function InstallMenu() {
  return (
    <Menu
      label={
        <>
          +<span class="wide-only"> Add machine</span>
        </>
      }
      name="Add a machine"
      class="to-left"
    >
      {() => <InstallLine />}
    </Menu>
  );
}

export function InstallLine() {
  const [own, setOwn] = useState(false);
  const answer = info.data.value;
  if (answer === null)
    return info.loading.value ? null : <p class="dim">The server did not say how to install its agent.</p>;
  const authority = withAuthority(answer.install_command);
  return (
    <div class="install">
      <p>Run this on a Linux machine (5.10 or newer) to profile it:</p>
      <Line text={own && authority !== null ? authority : answer.install_command} />
      {authority !== null && (
        <label class="install-hint">
          <input type="checkbox" checked={own} onChange={() => setOwn(!own)} />
          <span>
            The server's certificate is not publicly trusted. Put the certificate of its authority on that machine
            first, as <code>{CA_FILE}</code> in the folder where the line is run.
          </span>
        </label>
      )}
      <p class="dim">
        Where the server wants a token for sending, the script asks for it; without a terminal, end the line with{" "}
        <code>{own && authority !== null ? "" : "-s -- "}--token-file FILE</code>.
      </p>
      {!answer.agent_download && (
        <p class="warn-text">
          This server has no agent to hand out: put the binary beside the server's, or name its folder with{" "}
          <code>--agent-dir</code>.
        </p>
      )}
    </div>
  );
}

function Line({ text }: { text: string }) {
  const [tried, setTried] = useState({ text: "", done: false });
  return (
    <div class="install-line">
      <code>
        {text.split(" ").map((word, i) => (
          <Fragment key={i}>
            {i > 0 && " "}
            <span>{word}</span>
          </Fragment>
        ))}
      </code>
      <button
        type="button"
        class="button primary"
        onClick={() => void copyText(text).then((done) => setTried({ text, done }))}
      >
        {tried.text !== text ? "Copy" : tried.done ? "Copied" : "Select and copy"}
      </button>
    </div>
  );
}
