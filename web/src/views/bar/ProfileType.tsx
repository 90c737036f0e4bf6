/** Which type of samples is looked at. */
import { typeName } from "../../logic/labels/profileTypes.ts";
import { page } from "../../state/address/page.ts";
import { ProfileTypes } from "../lazyViews.tsx";
import { Menu } from "../ui/Menu.tsx";

export function ProfileType() {
  const { type } = page.value;
  return (
    <Menu
      label={
        <>
          <span class="visually-hidden">Profile type: </span>
          {typeName(type)} ▾
        </>
      }
      name="Profile type"
      class="profile-type"
      onNear={ProfileTypes.preload}
    >
      {(close) => <ProfileTypes close={close} />}
    </Menu>
  );
}
