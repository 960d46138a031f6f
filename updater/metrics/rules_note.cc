#include "updater/metrics/rules_note.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

namespace fcap::updater {
namespace {

// The mistakes in many rules are many lines; each note is one.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string rules_note(const sources::RefreshState& state) {
  std::string note;
  if (!state.last_error.empty() && state.reloads > 0) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(state.age).count();
    note += fmt::format("rules: still version {}, last known to be current {} s ago: {}\n",
                        state.version, age, on_one_line(state.last_error));
  }
  for (const std::string& why : state.quarantined) {
    note += "rules: quarantined and not in force: " + on_one_line(why) + "\n";
  }
  if (state.quarantined_count > state.quarantined.size()) {
    note += fmt::format("rules: and {} more are quarantined\n",
                        state.quarantined_count - state.quarantined.size());
  }
  return note;
}

}  // namespace fcap::updater
