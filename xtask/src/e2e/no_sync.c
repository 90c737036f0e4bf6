/* Preloaded into a server, to show that the tests of power cuts would see it if the server did not sync. */
int fsync(int fd) { return (void)fd, 0; }
int fdatasync(int fd) { return (void)fd, 0; }
int sync_file_range(int fd, long from, long count, unsigned flags) { return (void)fd, (void)from, (void)count, (void)flags, 0; }
