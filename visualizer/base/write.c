#include "base/write.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        ssize_t written = write(fd, at, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        at += written;
        count -= (size_t)written;
    }
    return 0;
}
