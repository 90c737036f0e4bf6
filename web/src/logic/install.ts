/** The line that installs an agent. In: the server's own line. Out: the same for a server whose certificate no system knows. */

/** Where the lines below expect the certificate: in the folder that they are run in. */
export const CA_FILE = "ca.pem";

/**
 * The line with the server's certificate authority named, to curl for the script and to the script, which hands it to the
 * agent; null where there is none to name: without TLS, or where the line is of another shape.
 */
export function withAuthority(command: string): string | null {
  const parts = /^curl (-\w+) (https:\/\/\S+) \| sudo sh$/.exec(command);
  if (parts === null) return null;
  const [, options, url] = parts;
  return `curl ${options} --cacert ${CA_FILE} ${url} | sudo sh -s -- --ca-file ${CA_FILE}`;
}
