#include "updater/doctor/doctor.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <fcap/signed_id.h>

#include "base/outside_text.h"
#include "updater/doctor/server_checks.h"

namespace fcap::updater {
namespace {

std::string_view level_word(Finding::FindingLevel level) noexcept {
  switch (level) {
    case Finding::FindingLevel::kOk:
      return "ok";
    case Finding::FindingLevel::kWarning:
      return "warning";
    case Finding::FindingLevel::kError:
      return "error";
  }
  return "error";
}

void check_signing_keys(const SignatureSettings& signatures, Findings& findings) {
  if (signatures.key_file.empty()) return;
  const auto keys = SigningKeys::read(signatures.key_file);
  findings.push_back(keys.ok() ? Finding{Finding::FindingLevel::kOk, "files",
                                         fmt::format("signatures.key_file holds the keys {}",
                                                     fmt::join(keys.value()->ids(), ", "))}
                               : Finding{Finding::FindingLevel::kError, "files",
                                         "signatures.key_file: " + keys.status().text()});
}

}  // namespace

Findings check_servers(const Settings& settings) {
  Findings findings;
  check_signing_keys(settings.signatures, findings);
  check_kafka_cluster(settings, findings);
  check_redis_server(settings, findings);
  check_postgres_server(settings, findings);
  return findings;
}

bool must_change(const Findings& findings) noexcept {
  return std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.level == Finding::FindingLevel::kError;
  });
}

std::string findings_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<9} {}\n", level_word(finding.level), finding.server,
                        base::one_line(finding.text));
  }
  return text;
}

std::string findings_json(const Findings& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back(
        {{"level", level_word(finding.level)}, {"server", finding.server}, {"text", finding.text}});
  }
  const nlohmann::ordered_json all{{"ok", !must_change(findings)}, {"findings", list}};
  // Servers' words need not be UTF-8.
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fcap::updater
