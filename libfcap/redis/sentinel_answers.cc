#include "redis/sentinel_answers.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fcap::redis {

std::size_t SentinelAnswers::note_answer(std::size_t sentinel, NamedMaster named, TimePoint now) {
  answers_[sentinel] = SentinelAnswer{std::move(named), ++taken_, std::nullopt};
  for (std::optional<SentinelAnswer>& answer : answers_) {
    if (answer && answer->silent_since && now - *answer->silent_since >= kKept) answer.reset();
  }
  const bool epochs_known = std::all_of(answers_.begin(), answers_.end(),
                                        [](const std::optional<SentinelAnswer>& answer) {
                                          return !answer || answer->named.epoch.has_value();
                                        });
  const auto rank = [&](const SentinelAnswer& answer) {
    return std::make_tuple(epochs_known ? *answer.named.epoch : 0, count_of(answer),
                           answer.named.address.text == counting_, answer.at);
  };
  std::size_t best = sentinel;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i] && rank(*answers_[i]) > rank(*answers_[best])) best = i;
  }
  counting_ = answers_[best]->named.address.text;
  return best;
}

void SentinelAnswers::note_silence(std::size_t sentinel, TimePoint now) {
  std::optional<SentinelAnswer>& answer = answers_[sentinel];
  if (answer && !answer->silent_since) answer->silent_since = now;
}

void SentinelAnswers::doubt() {
  counting_.clear();
  for (std::optional<SentinelAnswer>& answer : answers_) {
    if (answer && answer->silent_since) answer.reset();
  }
}

// How many Sentinels name its master.
std::size_t SentinelAnswers::count_of(const SentinelAnswer& answer) const {
  return static_cast<std::size_t>(std::count_if(
      answers_.begin(), answers_.end(), [&](const std::optional<SentinelAnswer>& other) {
        return other && other->named.address.text == answer.named.address.text;
      }));
}

}  // namespace fcap::redis
