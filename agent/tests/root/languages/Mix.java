import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.security.AccessController;
import java.security.PrivilegedAction;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/**
 * A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the
 * end of b1, b2, ... b12. A unit is so many turns of one loop, of which each needs the result of the one before. Time
 * ends it, and never divides it.
 *
 * java -cp CLASSES Mix SECONDS MODE
 */
public class Mix {
    static final int TURNS = 20_000;
    static volatile long sink = 88172645463325252L;

    interface Step {
        long go(long x);
    }

    static long burn(long x) {
        for (int i = 0; i < TURNS; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    /** Seven units of a, three of b. */
    static void round(Step a, Step b) {
        long x = sink | 1;
        for (int i = 0; i < 7; i++) x += a.go(x);
        for (int i = 0; i < 3; i++) x += b.go(x);
        sink = x;
    }

    public static void main(String[] arguments) throws Exception {
        double seconds = Double.parseDouble(arguments[0]);
        String mode = arguments[1];
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end) {
            switch (mode) {
                case "plain": round(Plain::a1, Plain::b1); break;
                case "recursion": round(x -> Deep.a(200, x), x -> Deep.b(200, x)); break;
                case "lambda": round(Lambdas::a1, Lambdas::b1); break;
                case "exception": round(Throws::a, Throws::b); break;
                case "native": round(Natives::a1, Natives::b1); break;
                case "threads": threads(); break;
                case "virtual": virtual(); break;
                case "churn": churn(); break;
                default: throw new IllegalArgumentException(mode);
            }
        }
    }

    static void join(Thread... threads) throws InterruptedException {
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
    }

    static long times(int count, Step step) {
        long x = sink | 1;
        for (int i = 0; i < count; i++) x += step.go(x);
        return x;
    }

    static void threads() throws InterruptedException {
        join(
            new Thread(() -> sink = times(70, Plain::a1), "mix-a"),
            new Thread(() -> sink = times(30, Plain::b1), "mix-b"));
    }

    /** By reflection, so that it compiles where there are none. */
    static void virtual() throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        CountDownLatch done = new CountDownLatch(20);
        for (int i = 0; i < 20; i++) {
            boolean isA = i % 10 < 7;
            start.invoke(null, (Runnable) () -> {
                sink = times(5, isA ? Virtuals::a1 : Virtuals::b1);
                done.countDown();
            });
        }
        done.await();
    }

    /** Another class of the same name each time, which is compiled, found wrong, compiled again, and unloaded. */
    static void churn() throws Exception {
        URL[] here = {Mix.class.getProtectionDomain().getCodeSource().getLocation()};
        try (URLClassLoader loader = new URLClassLoader(here, null)) {
            Class<?> made = loader.loadClass("Mix$Churned");
            Method run = made.getMethod("run", boolean.class, long.class);
            for (int i = 0; i < 5; i++) round(step(run, true), step(run, false));
        }
        if (++churned % 8 == 0) System.gc();
    }

    static int churned;

    static Step step(Method run, boolean isA) {
        return x -> {
            try {
                return (Long) run.invoke(null, isA, x);
            } catch (IllegalAccessException | InvocationTargetException e) {
                throw new IllegalStateException(e);
            }
        };
    }

    static final class Plain {
        static long a1(long x) { return a2(x + 1) * (x | 3) + (x >>> 3); }
        static long a2(long x) { return a3(x * 31) + x; }
        static long a3(long x) { return a4(x + 3) + 1; }
        static long a4(long x) { return a5(x + 4) * (x | 3) + (x >>> 3); }
        static long a5(long x) { return a6(x * 31) + x; }
        static long a6(long x) { return a7(x + 6) + 1; }
        static long a7(long x) { return a8(x + 7) * (x | 3) + (x >>> 3); }
        static long a8(long x) { return a9(x * 31) + x; }
        static long a9(long x) { return a10(x + 9) + 1; }
        static long a10(long x) { return a11(x + 10) * (x | 3) + (x >>> 3); }
        static long a11(long x) { return a12(x * 31) + x; }
        static long a12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
        static long b1(long x) { return b2(x + 1) * (x | 3) + (x >>> 3); }
        static long b2(long x) { return b3(x * 31) + x; }
        static long b3(long x) { return b4(x + 3) + 1; }
        static long b4(long x) { return b5(x + 4) * (x | 3) + (x >>> 3); }
        static long b5(long x) { return b6(x * 31) + x; }
        static long b6(long x) { return b7(x + 6) + 1; }
        static long b7(long x) { return b8(x + 7) * (x | 3) + (x >>> 3); }
        static long b8(long x) { return b9(x * 31) + x; }
        static long b9(long x) { return b10(x + 9) + 1; }
        static long b10(long x) { return b11(x + 10) * (x | 3) + (x >>> 3); }
        static long b11(long x) { return b12(x * 31) + x; }
        static long b12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
    }

    static final class Deep {
        static long a(int depth, long x) { return depth > 1 ? a(depth - 1, x + depth) + x : Plain.a12(x); }
        static long b(int depth, long x) { return depth > 1 ? b(depth - 1, x + depth) + x : Plain.b12(x); }
    }

    static final class Lambdas {
        /** One call, of 22 receivers. */
        static long through(Step step, long x) { return step.go(x) + 1; }

        static long a1(long x) { return through(y -> a2(y + 1) + 1, x) * 3; }
        static long a2(long x) { return through(y -> a3(y + 2) + 1, x) * 3; }
        static long a3(long x) { return through(y -> a4(y + 3) + 1, x) * 3; }
        static long a4(long x) { return through(y -> a5(y + 4) + 1, x) * 3; }
        static long a5(long x) { return through(y -> a6(y + 5) + 1, x) * 3; }
        static long a6(long x) { return through(y -> a7(y + 6) + 1, x) * 3; }
        static long a7(long x) { return through(y -> a8(y + 7) + 1, x) * 3; }
        static long a8(long x) { return through(y -> a9(y + 8) + 1, x) * 3; }
        static long a9(long x) { return through(y -> a10(y + 9) + 1, x) * 3; }
        static long a10(long x) { return through(y -> a11(y + 10) + 1, x) * 3; }
        static long a11(long x) { return through(y -> a12(y + 11) + 1, x) * 3; }
        static long a12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
        static long b1(long x) { return through(y -> b2(y + 1) + 1, x) * 3; }
        static long b2(long x) { return through(y -> b3(y + 2) + 1, x) * 3; }
        static long b3(long x) { return through(y -> b4(y + 3) + 1, x) * 3; }
        static long b4(long x) { return through(y -> b5(y + 4) + 1, x) * 3; }
        static long b5(long x) { return through(y -> b6(y + 5) + 1, x) * 3; }
        static long b6(long x) { return through(y -> b7(y + 6) + 1, x) * 3; }
        static long b7(long x) { return through(y -> b8(y + 7) + 1, x) * 3; }
        static long b8(long x) { return through(y -> b9(y + 8) + 1, x) * 3; }
        static long b9(long x) { return through(y -> b10(y + 9) + 1, x) * 3; }
        static long b10(long x) { return through(y -> b11(y + 10) + 1, x) * 3; }
        static long b11(long x) { return through(y -> b12(y + 11) + 1, x) * 3; }
        static long b12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
    }

    static final class Thrown extends Exception {
        final long x;
        Thrown(long x) { this.x = x; }
    }

    static final class Throws {
        static long passed;
        static long a(long x) { try { return a1(x); } catch (Thrown e) { return e.x; } }
        static long b(long x) { try { return b1(x); } catch (Thrown e) { return e.x; } }

        static long a1(long x) throws Thrown { return a2(x + 1) * 3 + 1; }
        static long a2(long x) throws Thrown { return a3(x + 2) * 3 + 1; }
        static long a3(long x) throws Thrown { return a4(x + 3) * 3 + 1; }
        static long a4(long x) throws Thrown { return a5(x + 4) * 3 + 1; }
        static long a5(long x) throws Thrown { return a6(x + 5) * 3 + 1; }
        static long a6(long x) throws Thrown {
            try { return a7(x + 6) + 1; } finally { passed++; }
        }
        static long a7(long x) throws Thrown { return a8(x + 7) * 3 + 1; }
        static long a8(long x) throws Thrown { return a9(x + 8) * 3 + 1; }
        static long a9(long x) throws Thrown { return a10(x + 9) * 3 + 1; }
        static long a10(long x) throws Thrown { return a11(x + 10) * 3 + 1; }
        static long a11(long x) throws Thrown { return a12(x + 11) * 3 + 1; }
        static long a12(long x) throws Thrown {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            throw new Thrown(x);
        }
        static long b1(long x) throws Thrown { return b2(x + 1) * 3 + 1; }
        static long b2(long x) throws Thrown { return b3(x + 2) * 3 + 1; }
        static long b3(long x) throws Thrown { return b4(x + 3) * 3 + 1; }
        static long b4(long x) throws Thrown { return b5(x + 4) * 3 + 1; }
        static long b5(long x) throws Thrown { return b6(x + 5) * 3 + 1; }
        static long b6(long x) throws Thrown {
            try { return b7(x + 6) + 1; } finally { passed++; }
        }
        static long b7(long x) throws Thrown { return b8(x + 7) * 3 + 1; }
        static long b8(long x) throws Thrown { return b9(x + 8) * 3 + 1; }
        static long b9(long x) throws Thrown { return b10(x + 9) * 3 + 1; }
        static long b10(long x) throws Thrown { return b11(x + 10) * 3 + 1; }
        static long b11(long x) throws Thrown { return b12(x + 11) * 3 + 1; }
        static long b12(long x) throws Thrown {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            throw new Thrown(x);
        }
    }

    static final class Natives {
        static final Method A4 = method("a4"), B4 = method("b4");

        static Method method(String name) {
            try {
                return Natives.class.getDeclaredMethod(name, long.class);
            } catch (NoSuchMethodException e) {
                throw new IllegalStateException(e);
            }
        }

        static long reflected(Method method, long x) {
            try {
                return (Long) method.invoke(null, x);
            } catch (IllegalAccessException | InvocationTargetException e) {
                throw new IllegalStateException(e);
            }
        }

        static long privileged(PrivilegedAction<Long> action) { return AccessController.doPrivileged(action); }

        static long a1(long x) { return a2(x + 1) + 1; }
        static long a2(long x) { return a3(x + 2) + 1; }
        static long a3(long x) { return reflected(A4, x + 3) + 1; }
        static long a4(long x) { return a5(x + 4) + 1; }
        static long a5(long x) { return a6(x + 5) + 1; }
        static long a6(long x) { return a7(x + 6) + 1; }
        static long a7(long x) { return privileged(() -> a8(x + 7)) + 1; }
        static long a8(long x) { return a9(x + 8) + 1; }
        static long a9(long x) {
            long[] result = new long[1];
            Arrays.sort(new Integer[] {1, 2}, (one, other) -> {
                result[0] += a10(x + 9);
                return 0;
            });
            return result[0];
        }
        static long a10(long x) { return a11(x + 10) + 1; }
        static long a11(long x) { return a12(x + 11) + 1; }
        static long a12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
        static long b1(long x) { return b2(x + 1) + 1; }
        static long b2(long x) { return b3(x + 2) + 1; }
        static long b3(long x) { return reflected(B4, x + 3) + 1; }
        static long b4(long x) { return b5(x + 4) + 1; }
        static long b5(long x) { return b6(x + 5) + 1; }
        static long b6(long x) { return b7(x + 6) + 1; }
        static long b7(long x) { return privileged(() -> b8(x + 7)) + 1; }
        static long b8(long x) { return b9(x + 8) + 1; }
        static long b9(long x) {
            long[] result = new long[1];
            Arrays.sort(new Integer[] {1, 2}, (one, other) -> {
                result[0] += b10(x + 9);
                return 0;
            });
            return result[0];
        }
        static long b10(long x) { return b11(x + 10) + 1; }
        static long b11(long x) { return b12(x + 11) + 1; }
        static long b12(long x) {
            for (int i = 0; i < TURNS; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
    }

    static final class Virtuals {
        static long a1(long x) { return a2(x + 1) * (x | 3) + (x >>> 3); }
        static long a2(long x) { return a3(x * 31) + x; }
        static long a3(long x) { return a4(x + 3) + 1; }
        static long a4(long x) { return a5(x + 4) * (x | 3) + (x >>> 3); }
        static long a5(long x) { return a6(x * 31) + x; }
        static long a6(long x) { return a7(x + 6) + 1; }
        static long a7(long x) { return a8(x + 7) * (x | 3) + (x >>> 3); }
        static long a8(long x) { return a9(x * 31) + x; }
        static long a9(long x) { return a10(x + 9) + 1; }
        static long a10(long x) { return a11(x + 10) * (x | 3) + (x >>> 3); }
        static long a11(long x) { return a12(x * 31) + x; }
        static long a12(long x) {
            for (int i = 0; i < TURNS; i++) {
                x ^= x << 13; x ^= x >>> 7; x ^= x << 17;
                if (i == TURNS / 2) Thread.yield();
            }
            return x;
        }
        static long b1(long x) { return b2(x + 1) * (x | 3) + (x >>> 3); }
        static long b2(long x) { return b3(x * 31) + x; }
        static long b3(long x) { return b4(x + 3) + 1; }
        static long b4(long x) { return b5(x + 4) * (x | 3) + (x >>> 3); }
        static long b5(long x) { return b6(x * 31) + x; }
        static long b6(long x) { return b7(x + 6) + 1; }
        static long b7(long x) { return b8(x + 7) * (x | 3) + (x >>> 3); }
        static long b8(long x) { return b9(x * 31) + x; }
        static long b9(long x) { return b10(x + 9) + 1; }
        static long b10(long x) { return b11(x + 10) * (x | 3) + (x >>> 3); }
        static long b11(long x) { return b12(x * 31) + x; }
        static long b12(long x) {
            for (int i = 0; i < TURNS; i++) {
                x ^= x << 13; x ^= x >>> 7; x ^= x << 17;
                if (i == TURNS / 2) Thread.yield();
            }
            return x;
        }
    }

    public static final class Churned {
        static volatile Object last = "";

        public static long run(boolean isA, long x) {
            // What is seen here changes halfway, and what was compiled before is wrong then.
            last = x % 50 == 0 ? (Object) x : "";
            return (isA ? a1(x) : b1(x)) + last.hashCode();
        }

        static long a1(long x) { return a2(x + 1) * (x | 3) + (x >>> 3); }
        static long a2(long x) { return a3(x * 31) + x; }
        static long a3(long x) { return a4(x + 3) + 1; }
        static long a4(long x) { return a5(x + 4) * (x | 3) + (x >>> 3); }
        static long a5(long x) { return a6(x * 31) + x; }
        static long a6(long x) { return a7(x + 6) + 1; }
        static long a7(long x) { return a8(x + 7) * (x | 3) + (x >>> 3); }
        static long a8(long x) { return a9(x * 31) + x; }
        static long a9(long x) { return a10(x + 9) + 1; }
        static long a10(long x) { return a11(x + 10) * (x | 3) + (x >>> 3); }
        static long a11(long x) { return a12(x * 31) + x; }
        static long a12(long x) {
            for (int i = 0; i < 20_000; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
        static long b1(long x) { return b2(x + 1) * (x | 3) + (x >>> 3); }
        static long b2(long x) { return b3(x * 31) + x; }
        static long b3(long x) { return b4(x + 3) + 1; }
        static long b4(long x) { return b5(x + 4) * (x | 3) + (x >>> 3); }
        static long b5(long x) { return b6(x * 31) + x; }
        static long b6(long x) { return b7(x + 6) + 1; }
        static long b7(long x) { return b8(x + 7) * (x | 3) + (x >>> 3); }
        static long b8(long x) { return b9(x * 31) + x; }
        static long b9(long x) { return b10(x + 9) + 1; }
        static long b10(long x) { return b11(x + 10) * (x | 3) + (x >>> 3); }
        static long b11(long x) { return b12(x * 31) + x; }
        static long b12(long x) {
            for (int i = 0; i < 20_000; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
            return x;
        }
    }
}
