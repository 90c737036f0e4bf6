import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Loads classes, calls their methods and drops them, for ever: what comes next lies where they lay.
 *
 * Generation N is a class jv_N, made of the bytes of jv_00000000, whose methods a to d each call the next one alone; a is
 * called by jv_s_M alone, where M is N modulo 8; the eight jv_s_M stay. So any other pair of caller and callee is a wrong
 * name.
 *
 * java -cp CLASSES Forever MODE SECONDS FIRST
 *
 * Mode "unload" drops each class after some milliseconds, and collects often. Mode "deoptimise" keeps 32 of them for a
 * while; what their compiled code was made for does not hold any more each time that they are called again.
 */
public class Forever {
    /** What a generation is called by. */
    public interface Made {
        long a(long x);

        /** Another way through the code from now on, which compiled code may not have. */
        void turn(int way);
    }

    static final String NUMBER = "00000000";

    /** Gives classes whose names have a number instead of eight zeros. */
    static final class Loader extends ClassLoader {
        final String number;

        Loader(int number) {
            super(Forever.class.getClassLoader());
            StringBuilder digits = new StringBuilder(String.valueOf(number));
            while (digits.length() < NUMBER.length()) digits.insert(0, '0');
            this.number = digits.toString();
        }

        Made load(String prefix) throws Exception {
            byte[] bytes = read(prefix + NUMBER + ".class");
            for (int at = 0; at + NUMBER.length() <= bytes.length; at++) {
                if (isNumber(bytes, at)) {
                    for (int digit = 0; digit < NUMBER.length(); digit++) bytes[at + digit] = (byte) number.charAt(digit);
                }
            }
            Class<?> made = defineClass(prefix + number, bytes, 0, bytes.length);
            return (Made) made.getConstructor().newInstance();
        }

        static boolean isNumber(byte[] bytes, int at) {
            for (int digit = 0; digit < NUMBER.length(); digit++) {
                if (bytes[at + digit] != '0') return false;
            }
            return true;
        }

        static byte[] read(String name) throws Exception {
            try (InputStream from = Forever.class.getResourceAsStream(name)) {
                ByteArrayOutputStream all = new ByteArrayOutputStream();
                byte[] part = new byte[4096];
                for (int count = from.read(part); count >= 0; count = from.read(part)) all.write(part, 0, count);
                return all.toByteArray();
            }
        }
    }

    static volatile long sink = 1;

    static long jv_s_0(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_1(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_2(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_3(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_4(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_5(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_6(Made made, long x) { return made.a(x) + 1; }
    static long jv_s_7(Made made, long x) { return made.a(x) + 1; }

    static void call(Made made, int number, long ns) {
        long x = sink;
        long end = System.nanoTime() + ns;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 20; i++) {
                switch (number % 8) {
                    case 0: x = jv_s_0(made, x); break;
                    case 1: x = jv_s_1(made, x); break;
                    case 2: x = jv_s_2(made, x); break;
                    case 3: x = jv_s_3(made, x); break;
                    case 4: x = jv_s_4(made, x); break;
                    case 5: x = jv_s_5(made, x); break;
                    case 6: x = jv_s_6(made, x); break;
                    default: x = jv_s_7(made, x); break;
                }
            }
        }
        sink = x;
    }

    static void unload(long end, int number) throws Exception {
        for (; System.nanoTime() < end; number++) {
            call(new Loader(number).load("jv_"), number, Math.min(end - System.nanoTime(), number % 32 == 0 ? 800_000_000L : 5_000_000L));
            if (number % 8 == 7) System.gc();
        }
    }

    /** A generation with what was done to it. */
    static final class Kept {
        final int number;
        final Loader loader;
        Made made;
        int visits;

        Kept(int number) throws Exception {
            this.number = number;
            loader = new Loader(number);
            made = loader.load("jv_");
        }

        /** Each time something else that its compiled code was made for is wrong. */
        void visit() throws Exception {
            if (visits == 3) {
                // What had one implementation has two from now on.
                made = loader.load("jw_");
            }
            made.turn(visits % 3);
            call(made, number, 8_000_000L);
            visits++;
        }
    }

    static void deoptimise(long end, int number) throws Exception {
        Kept[] kept = new Kept[32];
        for (int at = 0; System.nanoTime() < end; at = (at + 1) % kept.length) {
            if (kept[at] == null || kept[at].visits == 6) kept[at] = new Kept(number++);
            kept[at].visit();
        }
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
        int first = Integer.parseInt(arguments[2]);
        switch (arguments[0]) {
            case "unload": unload(end, first); break;
            case "deoptimise": deoptimise(end, first); break;
            default: throw new IllegalArgumentException(arguments[0]);
        }
    }
}
