import java.util.concurrent.CountDownLatch;

/** Threads that sleep: a half for ever, a quarter for a second each time, a quarter for a tenth. Argument: how many. */
public final class Sleepers {
    private static volatile long sum;

    private static void sleepAndWork(long milliseconds) {
        try {
            while (true) {
                Thread.sleep(milliseconds);
                for (int i = 0; i < 1000; i++) {
                    sum += i;
                }
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static void waitFor(CountDownLatch what) {
        try {
            what.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) {
        CountDownLatch never = new CountDownLatch(1);
        for (int number = 0; number < Integer.parseInt(arguments[0]); number++) {
            int kind = number % 4;
            Runnable work = kind < 2 ? () -> waitFor(never) : () -> sleepAndWork(kind == 2 ? 1000 : 100);
            new Thread(null, work, "sleeper-" + number, 256 << 10).start();
        }
        System.out.println("ready");
        waitFor(never);
    }
}
