/** How to add a machine: the line to run there, and what to know where the server asks for more. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { CA_FILE, isOnlyHere, withAddress, withAuthority } from "../../logic/agents/install.ts";
import { info } from "../../state/answers/server.ts";
import { copyText } from "../ui/clipboard.ts";

export function InstallLine() {
  const [own, setOwn] = useState(false);
  const [address, setAddress] = useState("");
  const answer = info.data.value;
  if (answer === null)
    return info.loading.value ? null : <p class="dim">The server did not say how to install its agent.</p>;
  const isHere = isOnlyHere(answer.install_command);
  const elsewhere = isHere ? withAddress(answer.install_command, address) : answer.install_command;
  const authority = elsewhere === null ? null : withAuthority(elsewhere);
  return (
    <div class="install">
      {isHere && (
        <>
          <p>This page is open under an address that only this machine has. To profile this machine, run here:</p>
          <Line text={answer.install_command} />
          <label class="install-address">
            To profile another one, how does it reach this server?
            <input
              type="text"
              placeholder="10.0.0.7 or stakeout.example:7373"
              spellcheck={false}
              autoComplete="off"
              value={address}
              aria-invalid={address !== "" && elsewhere === null}
              data-testid="install-address"
              onInput={(event) => setAddress(event.currentTarget.value)}
            />
          </label>
          {address !== "" && elsewhere === null && (
            <p class="warn-text" role="alert">
              That is no address of another machine's: give a host or an IP address, with or without a port.
            </p>
          )}
          <p class="dim">The server has to listen there: start it with --listen and that address.</p>
        </>
      )}
      {elsewhere !== null && <p>Run this on a Linux machine (5.10 or newer) to profile it:</p>}
      {elsewhere !== null && <Line text={own && authority !== null ? authority : elsewhere} />}
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
