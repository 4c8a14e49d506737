/* A file system whose files take long to open, as one over a network does.
 *
 * Preloaded (LD_PRELOAD), it waits OPEN_DELAY_US before each open of a file below OPEN_DELAY_BELOW.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

static void wait_for(const char *path) {
  const char *below = getenv("OPEN_DELAY_BELOW"), *delay = getenv("OPEN_DELAY_US");
  if (!path || !below || !delay || strncmp(path, below, strlen(below))) return;
  long us = atol(delay);
  struct timespec rest = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&rest, NULL);
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                                        \
  int name(const char *path, int flags, ...) {                            \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    mode_t mode = mode_of(flags, arguments);                              \
    va_end(arguments);                                                    \
    int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);        \
    wait_for(path);                                                       \
    return next(path, flags, mode);                                       \
  }

#define OPENAT(name)                                                      \
  int name(int folder, const char *path, int flags, ...) {                \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    mode_t mode = mode_of(flags, arguments);                              \
    va_end(arguments);                                                    \
    int (*next)(int, const char *, int, ...) = dlsym(RTLD_NEXT, #name);   \
    wait_for(path);                                                       \
    return next(folder, path, flags, mode);                               \
  }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
