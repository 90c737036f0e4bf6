/** A person's hand on the page: it waits for answers only, counts what it does, and keeps the time. */
import { expect, type Locator, type Page } from "@playwright/test";

/** More stops than a page has. */
const MOST_STOPS = 250;
/** Seconds from the first act to the answer: what the page is made for. */
const TARGET_S = 5;
/**
 * What is held wherever the flows run, and says little of the page: two CPUs are busy there with another flow, with
 * browsers, an agent, and a server that is hardly optimised.
 */
const BOUND_S = 45;

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
  /** The answer is in sight: says in a line what it took, and asserts that it was not too much. */
  answered: (scenario: string, most: { acts: number; letters?: number }) => void;
}

export function pointerOf(page: Page): Hand {
  return handOf(page, (what) => what.click());
}

/** No pointer: what is wanted is reached by Tab and taken by Enter. */
export function keysOf(page: Page): Hand {
  return handOf(page, async (what) => {
    await tabTo(page, what);
    await page.keyboard.press("Enter");
  });
}

function handOf(page: Page, take: (what: Locator) => Promise<void>): Hand {
  let begun: number | null = null;
  const hand: Hand = {
    acts: 0,
    letters: 0,
    click: async (what) => {
      begun ??= performance.now();
      await take(what);
      hand.acts += 1;
    },
    type: async (text) => {
      begun ??= performance.now();
      await page.keyboard.type(text);
      hand.letters += text.length;
    },
    answered: (scenario, { acts, letters = 0 }) => {
      const seconds = begun === null ? 0 : (performance.now() - begun) / 1000;
      const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
      const took = `${hand.acts} acts, ${hand.letters} letters, ${seconds.toFixed(1)} s`;
      console.log(`${scenario} at ${width} x ${height}: ${took} (target ${TARGET_S} s, held to ${BOUND_S} s here)`);
      expect(hand.acts, scenario).toBeLessThanOrEqual(acts);
      expect(hand.letters, scenario).toBeLessThanOrEqual(letters);
      expect(begun, "somebody did something").not.toBeNull();
      expect(seconds, `${scenario}: seconds from the first act to the answer`).toBeLessThanOrEqual(BOUND_S);
    },
  };
  return hand;
}
