#include "redis/sentinel_answers.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fcap::redis {

std::size_t SentinelAnswers::take(std::size_t sentinel, NamedMaster named, TimePoint now) {
  answers_[sentinel] = Answer{std::move(named), now};
  for (std::optional<Answer>& answer : answers_) {
    if (answer && now - answer->at > kKept) answer.reset();
  }
  const auto rank = [this](const Answer& answer) {
    return std::make_tuple(answer.named.epoch, count_of(answer),
                           answer.named.address.text == counting_, answer.at);
  };
  std::size_t best = sentinel;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i] && rank(*answers_[i]) > rank(*answers_[best])) best = i;
  }
  counting_ = answers_[best]->named.address.text;
  return best;
}

// How many Sentinels name its master with its epoch.
std::size_t SentinelAnswers::count_of(const Answer& answer) const {
  return static_cast<std::size_t>(
      std::count_if(answers_.begin(), answers_.end(), [&](const std::optional<Answer>& other) {
        return other && other->named.epoch == answer.named.epoch &&
               other->named.address.text == answer.named.address.text;
      }));
}

}  // namespace fcap::redis
