#include "cli/simulate/simulation.h"
namespace fcap::cli {
std::string to_html(const Simulation& /*simulation*/) {
  return {};
}
}  // namespace fcap::cli
