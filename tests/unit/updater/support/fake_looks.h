#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "updater/marks/log_look.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater::testing {

/// Logs that may be looked at; message n of a log named x has the payload "x<n>".
class FakeLooks final : public LogLooks {
 public:
  void ask(LookQuestion question) override {
    ++asked;
    if (unanswered) return;
    LookAnswer answer{.partition = question.partition, .ticket = question.ticket};
    answer.look = {.cluster = cluster, .low = low, .high = high};
    for (const std::int64_t offset : question.offsets) {
      const bool there = offset >= low && offset < high && !compacted && !gone.contains(offset);
      answer.look.found.push_back(there ? std::optional(point(offset)) : std::nullopt);
    }
    if (silent.contains(question.partition)) {
      answer.status = Status::error(StatusCode::kUnavailable, "no leader", true);
    }
    answers.push_back(std::move(answer));
  }
  std::optional<LookAnswer> take() override {
    if (answers.empty()) return std::nullopt;
    LookAnswer answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  [[nodiscard]] std::string payload(std::int64_t offset) const {
    return name + std::to_string(offset);
  }
  [[nodiscard]] LogPoint point(std::int64_t offset) const {
    return {offset, 1000 + offset, hash_message("", payload(offset))};
  }

  std::string cluster = "one";
  std::string name = "old";
  std::int64_t low = 0;
  std::int64_t high = 1000;
  bool compacted = false;         ///< none of the messages asked for is there any more
  std::set<std::int64_t> gone;    ///< these are not there any more
  std::set<std::int32_t> silent;  ///< an error is answered
  bool unanswered = false;        ///< nothing is answered
  int asked = 0;
  std::deque<LookAnswer> answers;
};

}  // namespace fcap::updater::testing
