#include "cli/failure.h"

#include <ostream>
#include <string>
#include <utility>

namespace fcap::cli {

Status wrong(std::string text) {
  return Status::error(StatusCode::kInvalidArgument, std::move(text));
}

int fail(Streams streams, const Status& status) {
  streams.err << "fcap: " << status.text() << "\n";
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace fcap::cli
