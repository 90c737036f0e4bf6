package shop;

import java.util.Random;

/** Offers with texts whose words are as unevenly frequent as those of a language. */
final class Offers {
    /** What an offer says. */
    record Offer(int number, String title, String text, int priceCents) {}

    static final int WORDS = 4_000;
    private static final int OFFERS = 20_000;
    private static final int TITLE_WORDS = 6;
    private static final int TEXT_WORDS = 60;
    private static final String[] SYLLABLES = {
        "ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "wen", "zar", "bel", "dor", "fin", "gol", "hul"
    };

    private final Random random;
    private int count;

    Offers(long seed) {
        random = new Random(seed);
    }

    synchronized Offer next() {
        int number = count++ % OFFERS;
        return new Offer(number, words(TITLE_WORDS), words(TEXT_WORDS), 100 + random.nextInt(100_000));
    }

    private String words(int number) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < number; i++) {
            text.append(word(rank())).append(' ');
        }
        return text.toString();
    }

    /** A word's rank: small ones are frequent. */
    private int rank() {
        return (int) Math.min(WORDS - 1, Math.exp(random.nextDouble() * Math.log(WORDS)));
    }

    /** The word of this rank, the same one each time. */
    static String word(int rank) {
        StringBuilder word = new StringBuilder();
        for (int rest = rank + SYLLABLES.length; rest > 0; rest /= SYLLABLES.length) {
            word.append(SYLLABLES[rest % SYLLABLES.length]);
        }
        return word.toString();
    }
}
