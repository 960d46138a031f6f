#include "updater/options/signatures.h"

#include <utility>

namespace fcap::updater {
namespace {

events::SignatureRequired required(SignatureSettings::Required setting) noexcept {
  switch (setting) {
    case SignatureSettings::Required::kNothing:
      return events::SignatureRequired::kNothing;
    case SignatureSettings::Required::kImpressions:
      return events::SignatureRequired::kImpressions;
    case SignatureSettings::Required::kAll:
      break;
  }
  return events::SignatureRequired::kAll;
}

}  // namespace

Result<std::shared_ptr<const events::SignatureCheck>> make_signature_check(
    const SignatureSettings& settings, LogCallback log) {
  using Check = std::shared_ptr<const events::SignatureCheck>;
  if (settings.key_file.empty()) return Check{};
  auto opened = SigningKeyFile::open(settings.key_file, std::move(log));
  if (!opened.ok()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "signatures.key_file: " + opened.status().text());
  }
  events::SignatureCheckOptions options;
  options.required = required(settings.required);
  options.limits = {.lifetime = settings.lifetime, .early_allowed = settings.early_allowed};
  const std::shared_ptr<const SigningKeyFile> file = std::move(opened).value();
  return Check{std::make_shared<events::SignatureCheck>([file] { return file->keys(); }, options)};
}

}  // namespace fcap::updater
