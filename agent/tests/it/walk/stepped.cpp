// A program of the sort that is hard to unwind, compiled without frame pointers. It stops itself, and then does a little of
// everything: frames of all sizes, calls through the PLT and back from libraries, exceptions, virtual calls, a stack that is
// aligned anew, memory from alloca, recursion.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

volatile long sink;

struct Shape {
	virtual ~Shape() = default;
	virtual long area(long n) const = 0;
};
struct Square : Shape {
	__attribute__((noinline)) long area(long n) const override { return n * n; }
};
struct Nested : Shape {
	const Shape &inner;
	explicit Nested(const Shape &s) : inner(s) {}
	__attribute__((noinline)) long area(long n) const override { return inner.area(n + 1) + 1; }
};

__attribute__((noinline)) long large_frame(long n)
{
	volatile char room[20000];

	for (long i = 0; i < 3; i++)
		room[(n + i * 4096) % 20000] = 1;
	return room[n % 20000];
}

__attribute__((noinline)) long aligned(long n)
{
	alignas(64) volatile double lanes[16];

	for (int i = 0; i < 16; i++)
		lanes[i] = n * i;
	return static_cast<long>(lanes[n & 15]) + large_frame(n);
}

__attribute__((noinline)) long dynamic(long n)
{
	volatile char *room = static_cast<char *>(__builtin_alloca(n % 300 + 1));

	room[n % 300] = 1;
	return room[n % 300] + aligned(n);
}

__attribute__((noinline)) void throws(long n)
{
	std::string text = std::to_string(n);

	if (n % 2)
		throw std::runtime_error(text);
	sink += text.size();
}

__attribute__((noinline)) long catches(long n)
{
	try {
		throws(n);
	} catch (const std::runtime_error &error) {
		return error.what()[0];
	}
	return 0;
}

__attribute__((noinline)) long recursive(long n)
{
	volatile long here = n;

	if (n == 0)
		return dynamic(7);
	return recursive(n - 1) * here + here;
}

static int compare(const void *a, const void *b)
{
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

int main()
{
	raise(SIGSTOP);
	Square square;
	Nested once(square), twice(once);
	sink += twice.area(3);
	sink += dynamic(5);
	int numbers[] = {5, 3, 9, 1, 7};
	qsort(numbers, 5, sizeof(int), compare);
	printf("%d %s %f\n", numbers[0], "text", 1.5);
	std::vector<std::string> words{"d", "a", "c", "b"};
	std::sort(words.begin(), words.end());
	std::map<std::string, int> counts;
	for (const auto &word : words)
		counts[word]++;
	sink += recursive(20);
	sink += catches(2);
	sink += catches(1);
	return 0;
}
