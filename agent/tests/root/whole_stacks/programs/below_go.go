// C below Go, and Go called back from C.
package main

/*
static volatile unsigned long sink;
extern void goCallback(unsigned long);

__attribute__((noipa)) static void burn_below_go(void)
{
	for (unsigned long i = 0; i < 50000; i++)
		sink += i;
}

__attribute__((noipa)) static void call_back_into_go(unsigned long x)
{
	volatile char room[64];

	room[x & 15] = 1;
	goCallback(x);
	sink += room[0];
}
*/
import "C"

import (
	"os"
	"strconv"
	"syscall"
)

var sink uint64

//go:noinline
func burnAboveC() {
	for i := uint64(0); i < 50000; i++ {
		sink += i
	}
}

//export goCallback
func goCallback(x C.ulong) {
	burnAboveC()
	sink += uint64(x)
}

//go:noinline
func callC(x uint64) uint64 {
	var room [9]uint64
	room[x%9] = x
	C.burn_below_go()
	C.call_back_into_go(C.ulong(x))
	return room[0]
}

func used() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	limit, _ := strconv.ParseFloat(os.Args[1], 64)
	for used() < limit {
		sink += callC(1)
	}
}
