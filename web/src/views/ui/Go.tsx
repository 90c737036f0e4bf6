/** A link that changes the state of this page; with a key held, the browser opens it elsewhere. */
import type { ComponentProps } from "preact";
import { linkTo, navigate, type PageState } from "../../state/address/page.ts";

type Props = Pick<
  ComponentProps<"a">,
  | "class"
  | "href"
  | "title"
  | "hidden"
  | "tabIndex"
  | "children"
  | "aria-label"
  | "aria-current"
  | "onPointerEnter"
  | "onFocus"
> & {
  change: Partial<PageState>;
  /** What is changed here, where a link elsewhere leads to less. */
  onGo?: () => void;
};

export function Go({ change, onGo = () => navigate(change), ...rest }: Props) {
  return (
    <a
      href={linkTo(change)}
      {...rest}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        onGo();
      }}
    />
  );
}
