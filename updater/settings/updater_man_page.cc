#include "updater/settings/updater_man_page.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <fcap/version.h>

#include "command_line/man_page.h"
#include "updater/settings/field_value.h"
#include "updater/settings/fields.h"

namespace fcap::updater {
namespace {

using command_line::roff;

constexpr std::string_view kDescription =
    "The configuration of fcap-updater is one JSON object with a member for each section; comments "
    "(// and /* */) are allowed. Each of these beats the ones before it: the defaults, the "
    "credentials that systemd passes (secrets only), this file, the environment "
    "(FCAP_UPDATER_, the section, _, the name, in capitals), the command line (--section.name "
    "value). An unknown name anywhere is an error. Durations are written with their unit, such as "
    "500ms or 32d, bytes as a number or with a unit, such as \"64KiB\".";

}  // namespace

std::string configuration_man_page() {
  const Settings defaults;
  std::string out = fmt::format(
      ".TH \"UPDATER.JSON\" \"5\" \"\" \"fcap {}\"\n.SH NAME\nupdater.json \\- configuration of "
      "fcap\\-updater\n.SH DESCRIPTION\n{}\n",
      FCAP_VERSION, roff(kDescription));
  for (const Section& section : sections()) {
    out += fmt::format(".SH {}\n{}\n", roff(section.name), roff(section.text));
    for (const Field& field : fields()) {
      if (field.name.substr(0, field.name.find('.')) != section.name) continue;
      if (const auto* secret = std::get_if<SecretKind>(&field.kind)) {
        out += fmt::format(".TP\n.B {}_file\n{} (a file that holds the secret; credential {})\n",
                           roff(field.name), roff(field.text), roff(secret->credential));
        continue;
      }
      out += fmt::format(".TP\n.B {}\n{} ({}; without: {})\n", roff(field.name), roff(field.text),
                         roff(describe_kind(field)), roff(value_as_json(field, defaults).dump()));
    }
  }
  return out + ".SH SEE ALSO\nfcap\\-updater(8), fcap(1)\n";
}

}  // namespace fcap::updater
