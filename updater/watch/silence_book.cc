#include "updater/watch/silence_book.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

// Together with the interval at which the ends are queried this stays below 10 s.
constexpr milliseconds kSilentAfter{6'000};
// While other partitions' messages keep coming, a partition counts as silent only after this time.
constexpr milliseconds kSilentInFlow{60'000};
constexpr milliseconds kRemedyAfter{10'000};
constexpr milliseconds kRemedyWaitMax{600'000};

}  // namespace

void SilenceBook::set_reading(std::span<const Reading> reading, TimePoint now) {
  std::map<std::int32_t, Silence> silences;
  for (const Reading& at : reading) {
    if (at.next >= at.end) continue;
    const auto known = silences_.find(at.partition);
    const bool moved = known == silences_.end() || known->second.next != at.next;
    silences.emplace(at.partition, moved ? Silence{at.next, now, now + kRemedyAfter, kRemedyAfter}
                                         : known->second);
  }
  silences_ = std::move(silences);
}

bool SilenceBook::is_silent(const Silence& silence, TimePoint now) const {
  return now - silence.since >= (drained_ > silence.since ? kSilentAfter : kSilentInFlow);
}

std::set<std::int32_t> SilenceBook::silent(TimePoint now) const {
  std::set<std::int32_t> partitions;
  for (const auto& [partition, silence] : silences_) {
    if (is_silent(silence, now)) partitions.insert(partition);
  }
  return partitions;
}

bool SilenceBook::take_remedy(TimePoint now) {
  bool due = false;
  for (auto& [partition, silence] : silences_) {
    if (!is_silent(silence, now) || now < silence.remedy_at) continue;
    due = true;
    silence.remedy_at = now + silence.wait;
    silence.wait = std::min(2 * silence.wait, kRemedyWaitMax);
  }
  return due;
}

}  // namespace fcap::updater
