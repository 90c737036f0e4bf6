import { describe, expect, it } from "vitest";
import { withAuthority } from "./install.ts";

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
