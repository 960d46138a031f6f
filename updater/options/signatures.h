#pragma once

#include <memory>

#include <fcap/log.h>
#include <fcap/status.h>

#include "events/signature_check.h"
#include "updater/settings/settings.h"

namespace fcap::updater {

/// What judges signed ids, with keys from signatures.key_file, which it reads again when the file
/// changes; null: no file is configured. Fails, naming the setting, if the file cannot be used.
Result<std::shared_ptr<const events::SignatureCheck>> make_signature_check(
    const SignatureSettings& settings, LogCallback log);

}  // namespace fcap::updater
