// A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the
// end of b1, b2, ... b12. Without an end.
#include <cstdint>

static volatile std::uint64_t sink = 88172645463325252ULL;

static inline std::uint64_t burn(std::uint64_t x) {
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

// Each needs what the next one gives, so that no call is the last thing that a function does.
#define LEVEL(name, next) __attribute__((noinline)) std::uint64_t name(std::uint64_t x) { return next(x + 1) * 3 + 1; }
#define CHAIN(of)                                                                                                      \
    __attribute__((noinline)) std::uint64_t of##12(std::uint64_t x) { return burn(x); }                                \
    LEVEL(of##11, of##12)                                                                                              \
    LEVEL(of##10, of##11)                                                                                              \
    LEVEL(of##9, of##10)                                                                                               \
    LEVEL(of##8, of##9)                                                                                                \
    LEVEL(of##7, of##8)                                                                                                \
    LEVEL(of##6, of##7)                                                                                                \
    LEVEL(of##5, of##6)                                                                                                \
    LEVEL(of##4, of##5)                                                                                                \
    LEVEL(of##3, of##4)                                                                                                \
    LEVEL(of##2, of##3)                                                                                                \
    LEVEL(of##1, of##2)

CHAIN(a)
CHAIN(b)

int main() {
    for (;;) {
        for (int i = 0; i < 7; i++) sink = a1(sink | 1);
        for (int i = 0; i < 3; i++) sink = b1(sink | 1);
    }
}
