// A room may include those that it knows, and the operating system.
#include <sys/socket.h>
#include <unistd.h>

#include "tls/context.h"
