/** What makes the methods of a generation have two implementations. */
public class jw_00000000 extends jv_00000000 {
    @Override
    public long b(long x) { return c(x + 3) + 2; }

    @Override
    public long c(long x) { return d(x + 4) + 2; }
}
