/* Preloaded before the C library: the n-th call that changes a file or its folder dies, or fails.
 *
 * fault_arm(n, mode) starts counting. Mode 1 kills the process before call n; 2 makes call n and all later
 * writes fail as on a full disk; 3 makes call n alone fail with an input or output error; 0 only counts.
 * Only files on a disk count, so that pipes stay usable.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long counted, target;
static int mode, armed;

void fault_arm(long n, int how)
{
    counted = 0;
    target = n;
    mode = how;
    armed = 1;
}

long fault_disarm(void)
{
    armed = 0;
    return counted;
}

/* Returns 1 if the call is to fail, with errno set. */
static int faulty(int writes)
{
    if (!armed)
        return 0;
    counted++;
    if (mode == 1 && counted == target)
        kill(getpid(), SIGKILL);
    if (mode == 2 && counted >= target && writes) {
        errno = ENOSPC;
        return 1;
    }
    if (mode == 3 && counted == target) {
        errno = EIO;
        return 1;
    }
    return 0;
}

static int on_disk(int fd)
{
    struct stat status;
    return armed && fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t write(int fd, const void *data, size_t size)
{
    return on_disk(fd) && faulty(1) ? -1 : REAL("write", ssize_t (*)(int, const void *, size_t))(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return on_disk(fd) && faulty(1) ? -1
        : REAL("pwrite", ssize_t (*)(int, const void *, size_t, off_t))(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    return on_disk(fd) && faulty(1) ? -1
        : REAL("pwrite64", ssize_t (*)(int, const void *, size_t, off64_t))(fd, data, size, at);
}

int fsync(int fd)
{
    return on_disk(fd) && faulty(0) ? -1 : REAL("fsync", int (*)(int))(fd);
}

int fdatasync(int fd)
{
    return on_disk(fd) && faulty(0) ? -1 : REAL("fdatasync", int (*)(int))(fd);
}

int ftruncate(int fd, off_t size)
{
    return on_disk(fd) && faulty(0) ? -1 : REAL("ftruncate", int (*)(int, off_t))(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return on_disk(fd) && faulty(0) ? -1 : REAL("ftruncate64", int (*)(int, off64_t))(fd, size);
}

int unlink(const char *path)
{
    return faulty(0) ? -1 : REAL("unlink", int (*)(const char *))(path);
}

int link(const char *from, const char *to)
{
    return faulty(1) ? -1 : REAL("link", int (*)(const char *, const char *))(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return faulty(1) ? -1
        : REAL("linkat", int (*)(int, const char *, int, const char *, int))(from_folder, from, to_folder, to, flags);
}

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...)                                  \
    {                                                                           \
        va_list rest;                                                           \
        int permissions;                                                        \
        va_start(rest, flags);                                                  \
        permissions = va_arg(rest, int);                                        \
        va_end(rest);                                                           \
        if ((flags & O_CREAT) && faulty(1))                                     \
            return -1;                                                          \
        return REAL(#name, int (*)(const char *, int, ...))(path, flags, permissions); \
    }

OPEN(open)
OPEN(open64)
