/**
 * The line that installs an agent. In: the server's own line. Out: the same for a certificate that no system knows,
 * and for another machine.
 */

/** Where the lines below expect the certificate: in the folder that they are run in. */
export const CA_FILE = "ca.pem";

/**
 * The line with the server's certificate authority named, to curl for the script and to the script, which hands it to
 * the agent; null where there is none to name: without TLS, or where the line is of another shape.
 */
export function withAuthority(command: string): string | null {
  const parts = /^curl (-\w+) (https:\/\/\S+) \| sudo sh$/.exec(command);
  if (parts === null) return null;
  const [, options, url] = parts;
  return `curl ${options} --cacert ${CA_FILE} ${url} | sudo sh -s -- --ca-file ${CA_FILE}`;
}

/** An address that only the machine itself has: another one would reach itself by it. */
const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0|\[::\])$/i;
const URL_IN_LINE = /https?:\/\/[^\s/]+/;

/** Whether the line names an address that no other machine can reach. */
export function isOnlyHere(command: string): boolean {
  const url = URL_IN_LINE.exec(command)?.[0] ?? "";
  return LOOPBACK.test(url.replace(/^https?:\/\//, "").replace(/:\d+$/, ""));
}

/**
 * The line with the server's address as another machine reaches it, `HOST` or `HOST:PORT`; scheme and port are those
 * of the line where none is given. Null where the text is no address, or is one that is only here.
 */
export function withAddress(command: string, text: string): string | null {
  const known = URL_IN_LINE.exec(command)?.[0];
  const given = /^(?:(https?):\/\/)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\/?$/.exec(text.trim());
  if (known === undefined || given === null || /^[.-]|[.-]$|\.\./.test(given[2] as string)) return null;
  const scheme = given[1] ?? known.replace(/:.*/, "");
  const port = given[3] ?? /:(\d+)$/.exec(known)?.[1];
  if (Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535) return null;
  const line = command.replace(known, `${scheme}://${given[2]}${port === undefined ? "" : `:${port}`}`);
  return isOnlyHere(line) ? null : line;
}
