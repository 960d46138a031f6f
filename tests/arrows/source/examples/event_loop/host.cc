// An outside user.
#include <sys/epoll.h>

#include <fcap/checker.h>

#include "redis/client.h"
