/** A person's hand on the page: it waits for answers only, and counts what it does. */
import { expect, type Locator, type Page } from "@playwright/test";

/** More stops than a page has. */
const MOST_STOPS = 250;

/** Goes on by Tab until something has the focus; says after how many stops. */
export async function tabTo(page: Page, wanted: Locator): Promise<number> {
  await expect(wanted).toBeVisible();
  for (let stops = 0; stops <= MOST_STOPS; stops++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return stops;
    await page.keyboard.press("Tab");
  }
  throw new Error("cannot be reached with Tab");
}

export interface Hand {
  /** Clicks of the pointer; by keys, presses of Enter. */
  acts: number;
  letters: number;
  click: (what: Locator) => Promise<void>;
  type: (text: string) => Promise<void>;
}

export function pointerOf(page: Page): Hand {
  const hand: Hand = {
    acts: 0,
    letters: 0,
    click: async (what) => {
      await what.click();
      hand.acts += 1;
    },
    type: (text) => typed(page, hand, text),
  };
  return hand;
}

/** No pointer: what is wanted is reached by Tab and taken by Enter. */
export function keysOf(page: Page): Hand {
  const hand: Hand = {
    acts: 0,
    letters: 0,
    click: async (what) => {
      await tabTo(page, what);
      await page.keyboard.press("Enter");
      hand.acts += 1;
    },
    type: (text) => typed(page, hand, text),
  };
  return hand;
}

async function typed(page: Page, hand: Hand, text: string): Promise<void> {
  await page.keyboard.type(text);
  hand.letters += text.length;
}
