/** What opens below the bar on top, and what stands where there is no view: apart, they would compress worse. */
export { HelpDialog } from "./HelpDialog.tsx";
export { InstallLine } from "./Install.tsx";
export { Lost } from "./Lost.tsx";
export { Moments } from "./Moments.tsx";
export { ProfileTypes } from "./ProfileTypes.tsx";
export { ShareChoices } from "./Share.tsx";
