// A line of input for `fcap check`: any bytes are safe, and what is wrong is said.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cli/check_question.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const auto asks : {fcap::cli::Asks::kCandidates, fcap::cli::Asks::kUserOnly}) {
    const auto question = fcap::cli::parse_question(line, asks);
    if (!question.ok()) {
      if (question.status().text().empty()) std::abort();
      continue;
    }
    if (!question.value().id_json.empty() && !nlohmann::json::accept(question.value().id_json)) {
      std::abort();
    }
  }
  return 0;
}
