// Machine code without frame pointers, made by hand: main -> outer -> made -> between -> made -> leaf. What it keeps
// in the frame pointer's register is nothing, a number, or the address of data, by turns. Usage: NAME
// CPU_MILLISECONDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef void called(void);

static volatile unsigned long sink;
static uint64_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static void (*made)(called *);

__attribute__((noinline)) static void leaf(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sink += i * 3;
}

__attribute__((noinline)) static void between(void)
{
	made(leaf);
	sink++;
}

__attribute__((noinline)) static void outer(void)
{
	made(between);
	sink++;
}

int main(int argc, char **argv)
{
	// push rbp; push rbx, six times; movabs rbp, NUMBER; mov ebx, 1000000; loop: dec ebx; jnz loop; call rdi; add
	// rsp, 40; pop rbx; pop rbp; ret
	static const unsigned char code[] = { 0x55, 0x53, 0x53, 0x53, 0x53, 0x53, 0x53, 0x48, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb, 0x40, 0x42, 0x0f, 0x00,
					      0xff, 0xcb, 0x75, 0xfc, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0x5b, 0x5d, 0xc3 };
	const uint64_t numbers[] = { 0, 41, (uint64_t)data };
	double end = (argc > 1 ? atof(argv[1]) : 1000) / 1000;
	unsigned char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof(code));
	made = (void (*)(called *))memory;
	for (int turn = 0; (double)clock() / CLOCKS_PER_SEC < end; turn++) {
		memcpy(memory + 9, &numbers[turn % 3], 8);
		outer();
	}
	printf("0 0\n");
	return 0;
}
