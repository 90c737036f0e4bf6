/** An address that is not the page's: what stands there is no view of anything. */
import { Fragment } from "preact";
import { EmptyNotice } from "../ui/Notices.tsx";
import { VIEWS } from "./Header.tsx";

export function Lost({ what }: { what: string }) {
  document.title = "Not found · Stakeout";
  return (
    <main class="main">
      <h1 class="visually-hidden">Not found</h1>
      <EmptyNotice title={`There is no ${what} here.`}>
        <p>
          Look at{" "}
          {VIEWS.map(([name, title]) => (
            <Fragment key={name}>
              <a class="button" href={name === "explore" ? "/" : `/?view=${name}`}>
                {title}
              </a>{" "}
            </Fragment>
          ))}
        </p>
      </EmptyNotice>
    </main>
  );
}
