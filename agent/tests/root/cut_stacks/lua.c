// Lua compiled by LuaJIT: main -> run -> lua_pcall -> made code, which calls `called` now and then. Ends with 77
// where the library is not there. Usage: NAME CPU_MILLISECONDS
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

__attribute__((noinline)) void called(void)
{
	for (int i = 0; i < 500000; i++)
		sink += i * 31;
}

static const char script[] =
	"local until_, address = ... local x, ffi = 0, require('ffi') "
	"local call = ffi.cast('void (*)(void)', ffi.cast('uintptr_t', address)) "
	"while os.clock() < until_ do for i = 1, 1e6 do x = (x * 31 + i) % 1048573 end for i = 1, 5 do call() end end";

__attribute__((noinline)) static int run(void *library, double seconds)
{
	void *(*new_state)(void) = dlsym(library, "luaL_newstate");
	void (*open_libraries)(void *) = dlsym(library, "luaL_openlibs");
	int (*load_string)(void *, const char *) = dlsym(library, "luaL_loadstring");
	void (*push_number)(void *, double) = dlsym(library, "lua_pushnumber");
	int (*call)(void *, int, int, int) = dlsym(library, "lua_pcall");
	void *state = new_state();
	volatile int status;

	open_libraries(state);
	if (load_string(state, script))
		return 1;
	push_number(state, seconds);
	push_number(state, (double)(unsigned long)called);
	status = call(state, 2, 0, 0);
	return status != 0;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libluajit-5.1.so.2", RTLD_NOW);

	if (!library || argc < 2)
		return 77;
	if (run(library, atof(argv[1]) / 1000))
		return 1;
	printf("0 0\n");
	return 0;
}
