package shop;

import java.io.IOException;
import java.io.UncheckedIOException;

/** Replaces some offers every second, as a supplier's feed does. */
final class Import implements Runnable {
    private static final int OFFERS_A_ROUND = 400;
    private static final long ROUND_MS = 1_000;

    private final Catalogue catalogue;
    private final Offers offers;

    Import(Catalogue catalogue, Offers offers) {
        this.catalogue = catalogue;
        this.offers = offers;
    }

    @Override
    public void run() {
        try {
            while (true) {
                takeFeed();
                Thread.sleep(ROUND_MS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void takeFeed() throws IOException {
        for (int i = 0; i < OFFERS_A_ROUND; i++) {
            catalogue.replace(offers.next());
        }
        catalogue.refresh();
    }
}
