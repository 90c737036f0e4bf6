// Reads one byte of /dev/zero at a time.
#include "work.h"
#include <fcntl.h>
#include <unistd.h>

KEPT static void read_one_byte_often(int file)
{
	char byte;

	for (int i = 0; i < 1000; i++)
		sink += read(file, &byte, 1);
}

int main(int count, char **arguments)
{
	int file = open("/dev/zero", O_RDONLY);

	(void)count;
	begin(arguments);
	while (goes_on())
		read_one_byte_often(file);
	return 0;
}
