/* LD_PRELOAD: each open of a file below $SLOW_FOLDER takes $SLOW_US microseconds longer, as on a
 * file system with a distant metadata server. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(const char *path)
{
	const char *folder = getenv("SLOW_FOLDER"), *us = getenv("SLOW_US");
	if (folder && us && strncmp(path, folder, strlen(folder)) == 0)
		usleep((useconds_t)atoi(us));
}

#define SLOW_OPEN(name)                                                             \
	int name(const char *path, int flags, ...)                                      \
	{                                                                               \
		static int (*next)(const char *, int, ...);                                 \
		va_list rest;                                                               \
		int mode;                                                                   \
		if (!next)                                                                  \
			next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);        \
		va_start(rest, flags);                                                      \
		mode = va_arg(rest, int);                                                   \
		va_end(rest);                                                               \
		wait_for(path);                                                             \
		return next(path, flags, mode);                                             \
	}

SLOW_OPEN(open)
SLOW_OPEN(open64)
