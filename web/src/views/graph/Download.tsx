/** The button that opens the links to the same profile in other formats. */
import { DownloadLinks } from "../lazyViews.tsx";
import { Menu } from "../ui/Menu.tsx";
import type { Download as Props } from "./DownloadLinks.tsx";

export function Download(profile: Props) {
  return (
    <Menu label="Download ▾" name="Download" class="to-left" onNear={DownloadLinks.preload}>
      {(close) => <DownloadLinks {...profile} close={close} />}
    </Menu>
  );
}
