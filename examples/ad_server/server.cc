#include "server.h"

#include <chrono>
#include <thread>
#include <vector>

namespace ad_server {
namespace {

using std::chrono::steady_clock;

fcap::Instant now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

void Server::serve(std::size_t worker, const std::atomic<bool>& stop) {
  const std::string id_prefix = run_id_ + "-" + std::to_string(worker) + "-";
  for (std::uint64_t number = 0; !stop.load(); ++number) {
    const auto request = parts_.traffic.next(worker);
    if (!request) return;
    std::this_thread::sleep_until(request->due);
    answer(*request, id_prefix + std::to_string(number));
  }
}

void Server::answer(const AdRequest& request, const std::string& plain_id) {
  std::vector<fcap::Candidate> candidates;
  candidates.reserve(request.offers.size());
  for (const AdOffer& offer : request.offers)
    candidates.push_back({offer.campaign, offer.creative});

  const auto begin = steady_clock::now();
  const fcap::CheckResult result =
      parts_.checker.check(request.user, candidates, {.now = request.at});
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin);
  LiveCounters& counters = parts_.counters;
  counters.check_us.record(static_cast<std::uint64_t>(took.count()));
  counters.requests.fetch_add(1, std::memory_order_relaxed);

  const AdOffer* chosen = nullptr;
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    if (!result.verdicts[i].allowed) {
      counters.candidates_capped.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    counters.candidates_allowed.fetch_add(1, std::memory_order_relaxed);
    if (chosen == nullptr) chosen = &request.offers[i];
  }
  if (chosen == nullptr) return;  // every ad is capped: a house ad, say, which has no cap

  const fcap::Instant at = request.at.value_or(now());
  const auto impression_id = parts_.ids.make(
      {.user_id = request.user, .campaign_id = chosen->campaign, .creative_id = chosen->creative},
      at, plain_id);
  if (!impression_id) {  // it would not be counted
    counters.not_published.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // Counts for our own next check at once, not only when it has come back through Kafka.
  if (parts_.note_shown) {
    parts_.checker.note_shown(request.user, {chosen->campaign, chosen->creative}, *impression_id,
                              at);
  }
  const bool unread = result.reason != fcap::Reason::kPassed;
  const bool published =
      parts_.producer.publish({.user = request.user,
                               .campaign = chosen->campaign,
                               .creative = chosen->creative,
                               .id = *impression_id,
                               .at = at,
                               .reason = unread ? to_string(result.reason) : std::string_view()});
  // Otherwise the user would be capped for an impression that nobody has heard of.
  if (!published && parts_.note_shown) {
    parts_.checker.take_back_shown(request.user, {chosen->campaign, chosen->creative},
                                   *impression_id);
  }
  (published ? counters.shown : counters.not_published).fetch_add(1, std::memory_order_relaxed);
  if (published && unread) {
    counters.shown_fail_open.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace ad_server
