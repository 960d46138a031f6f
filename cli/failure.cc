#include "cli/failure.h"

#include <ostream>
#include <string>
#include <utility>

#include "base/outside_text.h"

namespace fcap::cli {

Status wrong(std::string text) {
  return Status::error(StatusCode::kInvalidArgument, std::move(text));
}

int fail(Streams streams, const Status& status) {
  // Servers, files and events have words of their own.
  streams.err << "fcap: " << base::printable_lines(status.text()) << "\n";
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace fcap::cli
