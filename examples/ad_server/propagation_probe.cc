#include "propagation_probe.h"

#include <array>
#include <chrono>
#include <thread>

namespace ad_server {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kGiveUpAfter{10};

}  // namespace

void PropagationProbe::run(const std::atomic<bool>& stop) {
  for (std::uint64_t number = 0; !stop.load(); ++number) {
    probe(options_.user_prefix + "probe-" + std::to_string(number), stop);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void PropagationProbe::probe(const std::string& user, const std::atomic<bool>& stop) {
  const auto begin = steady_clock::now();
  const auto shown_at =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto id = ids_.make({.user_id = user, .campaign_id = options_.campaign}, shown_at, user);
  if (!id) return;
  if (!producer_.publish({.user = user,
                          .campaign = options_.campaign,
                          .creative = {},
                          .id = *id,
                          .at = shown_at})) {
    return;
  }
  const std::array<fcap::Candidate, 1> candidate{{{options_.campaign, {}}}};
  while (steady_clock::now() - begin < kGiveUpAfter) {
    const fcap::CheckResult result = checker_.check(user, candidate);
    if (result.verdicts[0].reason == fcap::Reason::kCapped) {
      const auto took = steady_clock::now() - begin;
      counters_.propagation_us.record(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
      return;
    }
    if (stop.load()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  counters_.probes_unseen.fetch_add(1);
}

}  // namespace ad_server
