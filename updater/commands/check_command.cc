#include <fmt/core.h>

#include "updater/commands/commands.h"
#include "updater/doctor/doctor.h"
#include "updater/settings/reference.h"

namespace fcap::updater {

int check_command(const LoadedSettings& loaded, const CommandLine& line) {
  if (!line.connect) {
    fmt::print("{}", effective_configuration(loaded, line.json));
    return kExitOk;
  }
  const Findings findings = check_servers(loaded.settings);
  fmt::print("{}", line.json ? findings_json(findings) : findings_text(findings));
  return must_change(findings) ? kExitFailure : kExitOk;
}

}  // namespace fcap::updater
