#pragma once

#include <iosfwd>

namespace fcap::cli {

/// Where a command reads and writes; a test gives its own.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

/// What the process exits with.
enum ExitCode : int {
  kExitOk = 0,       ///< everything asked for was answered, whatever the verdicts
  kExitFailure = 1,  ///< a server, a file or a line of input failed; standard error says which
  kExitUsage = 2,    ///< the command line is wrong
};

}  // namespace fcap::cli
