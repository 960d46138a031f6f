// A public header.
#pragma once

#include <asio/dispatch.hpp>
#include <poll.h>

#include <fcap/asio.h>

#include "ledger/right.h"
