/** How the server was compiled, where that makes it slower than it could be. */

export interface BuildText {
  readonly name: string;
  readonly hint: string;
}

/** Words for a build by this profile of cargo; none for one that is fully optimised. */
export function buildText(profile: string): BuildText | null {
  if (profile === "up") {
    return {
      name: "first-look build",
      hint: "Compiled for a quick start: questions take up to three times as long as with cargo xtask up --release.",
    };
  }
  if (profile === "debug") {
    return { name: "debug build", hint: "Compiled without optimisation: everything takes many times as long." };
  }
  return null;
}
