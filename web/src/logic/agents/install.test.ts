import { describe, expect, it } from "vitest";
import { isOnlyHere, withAddress, withAuthority } from "./install.ts";

describe("the line that installs an agent", () => {
  it("names an authority to curl and to the script", () => {
    expect(withAuthority("curl -fsSL https://stakeout.example:7373/install.sh | sudo sh")).toBe(
      "curl -fsSL --cacert ca.pem https://stakeout.example:7373/install.sh | sudo sh -s -- --ca-file ca.pem",
    );
  });

  it("has no authority to name without TLS, and leaves lines alone that it doesn't know", () => {
    expect(withAuthority("curl -fsSL http://127.0.0.1:7373/install.sh | sudo sh")).toBeNull();
    expect(withAuthority("curl -fsSL https://a/install.sh | sudo sh -s -- --no-service")).toBeNull();
    expect(withAuthority("")).toBeNull();
  });
});

describe("the address of the server", () => {
  const line = (address: string) => `curl -fsSL ${address}/install.sh | sudo sh`;

  it("is asked for where no other machine can reach it", () => {
    for (const host of ["127.0.0.1", "localhost", "[::1]", "127.1.2.3", "0.0.0.0"])
      for (const port of ["", ":7373"]) expect(isOnlyHere(line(`http://${host}${port}`))).toBe(true);
    for (const host of ["stakeout.example", "10.0.0.7", "[fe80::1]", "localhost.example"])
      expect(isOnlyHere(line(`https://${host}:7373`))).toBe(false);
  });

  it("takes the place of the server's own, with its scheme and port where none is given", () => {
    const here = line("http://127.0.0.1:7373");
    expect(withAddress(here, " 10.0.0.7 ")).toBe(line("http://10.0.0.7:7373"));
    expect(withAddress(here, "db-1.example:80")).toBe(line("http://db-1.example:80"));
    expect(withAddress(here, "https://[fd00::7]:7373/")).toBe(line("https://[fd00::7]:7373"));
  });

  it("is refused where it is none, or only here too", () => {
    const here = line("http://127.0.0.1:7373");
    for (const text of [
      "",
      "a b",
      "a/b",
      "$(reboot)",
      "a;b",
      "a:99999",
      "localhost",
      "127.0.0.2",
      "-a",
      "ftp://a",
      "a..b",
    ])
      expect(withAddress(here, text)).toBeNull();
  });
});
