#include "cli/failure.h"

#include <ostream>

namespace fcap::cli {

int fail(Streams streams, const Status& status) {
  streams.err << "fcap: " << status.text() << "\n";
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace fcap::cli
