/** A generation of Forever: its number takes the place of the zeros. */
public class jv_00000000 implements Forever.Made {
    static int way;

    @Override
    public void turn(int way) { jv_00000000.way = way; }

    @Override
    public long a(long x) { return b(x + 1) + 1; }

    public long b(long x) { return c(x + 2) + 1; }

    public long c(long x) { return d(x + 3) + 1; }

    public long d(long x) {
        for (int i = 0; i < 2_000; i++) {
            if (way == 0) {
                x ^= x << 13;
                x ^= x >>> 7;
            } else if (way == 1) {
                x = x * 31 + i;
            } else {
                x += x >>> 3 ^ i;
            }
        }
        return x;
    }
}
