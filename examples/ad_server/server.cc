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
  const fcap::CheckResult result = parts_.checker.check(
      request.user, candidates, {.now = request.at, .keep_record = parts_.tier == Tier::kReserve});
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin);
  LiveCounters& counters = parts_.counters;
  counters.check_us.record(static_cast<std::uint64_t>(took.count()));
  counters.requests.fetch_add(1, std::memory_order_relaxed);

  fcap::Instant at = request.at.value_or(now());
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    (result.verdicts[i].allowed ? counters.candidates_allowed : counters.candidates_capped)
        .fetch_add(1, std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    if (!result.verdicts[i].allowed) continue;
    const AdOffer& offer = request.offers[i];
    const auto id = parts_.ids.make(
        {.user_id = request.user, .campaign_id = offer.campaign, .creative_id = offer.creative}, at,
        plain_id);
    if (!id) {  // it would not be counted
      counters.not_published.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (claim(request, offer, *id, result, at)) return show(request, offer, *id, result, at);
  }
  // Every ad is capped: a house ad, say, which has no cap.
}

// Makes the impression count before it has come back through Kafka. False: it must not be shown.
bool Server::claim(const AdRequest& request, const AdOffer& offer, const std::string& id,
                   const fcap::CheckResult& check, fcap::Instant& at) {
  const fcap::Candidate candidate{offer.campaign, offer.creative};
  switch (parts_.tier) {
    case Tier::kNothing:
      break;
    case Tier::kLocal:
      parts_.checker.note_shown(request.user, candidate, id, at);
      break;
    case Tier::kShared:
      parts_.checker.note_shown(request.user, candidate, id, fcap::SharedNote(check.seen, at));
      break;
    case Tier::kReserve: {
      const fcap::ReserveResult place =
          parts_.checker.reserve(request.user, candidate, id, {.now = at, .after = &check});
      // Whatever became of a call without an answer, nobody shows this id.
      if (place.unknown) parts_.checker.release(request.user, candidate, id);
      if (place.allowed) at = place.time;
      return place.allowed;
    }
  }
  return true;
}

// Otherwise the user would be capped for an impression that nobody has heard of.
void Server::give_back(const AdRequest& request, const AdOffer& offer, const std::string& id) {
  const fcap::Candidate candidate{offer.campaign, offer.creative};
  if (parts_.tier == Tier::kReserve) {
    parts_.checker.release(request.user, candidate, id);
  } else if (parts_.tier != Tier::kNothing) {
    parts_.checker.take_back_shown(request.user, candidate, id);
  }
}

void Server::show(const AdRequest& request, const AdOffer& offer, const std::string& id,
                  const fcap::CheckResult& check, fcap::Instant at) {
  LiveCounters& counters = parts_.counters;
  const bool unread = check.reason != fcap::Reason::kPassed;
  const bool published =
      parts_.producer.publish({.user = request.user,
                               .campaign = offer.campaign,
                               .creative = offer.creative,
                               .id = id,
                               .at = at,
                               .reason = unread ? to_string(check.reason) : std::string_view()});
  if (!published) give_back(request, offer, id);
  (published ? counters.shown : counters.not_published).fetch_add(1, std::memory_order_relaxed);
  if (published && unread) {
    counters.shown_fail_open.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace ad_server
