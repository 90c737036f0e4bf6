import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;

public class Loop {
    static long burnInJava(int turns) {
        long sum = 0;
        for (int i = 0; i < turns; i++) sum = sum * 31 + i;
        return sum;
    }

    static long level(int depth) {
        return depth > 0 ? level(depth - 1) + 1 : burnInJava(20000);
    }

    public static void main(String[] arguments) {
        double limit = Double.parseDouble(arguments[0]);
        ThreadMXBean own = ManagementFactory.getThreadMXBean();
        long sum = 0;
        while (own.getCurrentThreadCpuTime() < limit * 1e9) {
            List<byte[]> garbage = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                sum += level(5);
                garbage.add(new byte[4096]);
            }
            sum += garbage.size();
        }
        if (sum == 1) System.out.println(sum);
    }
}
