// The one public header that needs more than the standard library.
#pragma once

#include <asio/dispatch.hpp>
