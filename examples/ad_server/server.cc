#include "server.h"

#include <chrono>
#include <thread>
#include <utility>
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
  if (request.beacons.size() > 1) return answer_page(request, plain_id);
  std::vector<fcap::Candidate> candidates;
  candidates.reserve(request.offers.size());
  for (const AdOffer& offer : request.offers)
    candidates.push_back({offer.campaign, offer.creative});

  const auto begin = steady_clock::now();
  const fcap::CheckResult result = parts_.checker.check(
      request.user, candidates, {.now = request.at, .keep_record = parts_.tier == Tier::kReserve});
  count_check(begin);
  LiveCounters& counters = parts_.counters;
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    (result.verdicts[i].allowed ? counters.candidates_allowed : counters.candidates_capped)
        .fetch_add(1, std::memory_order_relaxed);
  }
  fcap::Instant at = request.at.value_or(now());
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    if (!result.verdicts[i].allowed) continue;
    const AdOffer& offer = request.offers[i];
    const auto id = make_id(request, offer, at, plain_id);
    if (!id) return;
    if (claim(request, offer, *id, result, at)) {
      return show({request.user, offer, *id, at, result.reason},
                  request.beacons.empty() ? Delay::zero() : request.beacons.front());
    }
  }
  // Every ad is capped: a house ad, say, which has no cap.
}

// Several slots at once. The ids are signed, so each is made when its ad is known.
void Server::answer_page(const AdRequest& request, const std::string& plain_id) {
  const std::size_t slots = request.beacons.size();
  std::vector<fcap::Candidate> ranked;
  for (const AdOffer& offer : request.offers) {
    ranked.insert(ranked.end(), slots, {offer.campaign, offer.creative});
  }
  const auto begin = steady_clock::now();
  const fcap::PickResult page =
      parts_.checker.first_allowed(request.user, ranked, slots, {.now = request.at});
  count_check(begin);
  parts_.counters.candidates_allowed.fetch_add(page.picked.size(), std::memory_order_relaxed);
  parts_.counters.candidates_capped.fetch_add(slots - page.picked.size(),
                                              std::memory_order_relaxed);
  const fcap::Instant at = request.at.value_or(now());
  for (std::size_t slot = 0; slot < page.picked.size(); ++slot) {
    const AdOffer& offer = request.offers[page.picked[slot] / slots];
    const auto id = make_id(request, offer, at, plain_id + "-" + std::to_string(slot));
    if (!id) return;
    parts_.checker.note_shown({request.user, {offer.campaign, offer.creative}, *id, at, page.token},
                              fcap::Note::kEverywhere);
    show({request.user, offer, *id, at, page.reason}, request.beacons[slot]);
  }
}

void Server::count_check(steady_clock::time_point begin) {
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin);
  parts_.counters.check_us.record(static_cast<std::uint64_t>(took.count()));
  parts_.counters.requests.fetch_add(1, std::memory_order_relaxed);
}

// None: it cannot be signed, and so would not be counted.
std::optional<std::string> Server::make_id(const AdRequest& request, const AdOffer& offer,
                                           fcap::Instant at, const std::string& plain_id) {
  auto id = parts_.ids.make(
      {.user_id = request.user, .campaign_id = offer.campaign, .creative_id = offer.creative}, at,
      plain_id);
  if (!id) parts_.counters.not_published.fetch_add(1, std::memory_order_relaxed);
  return id;
}

// Makes the impression count before it has come back through Kafka. False: it must not be shown.
bool Server::claim(const AdRequest& request, const AdOffer& offer, const std::string& id,
                   const fcap::CheckResult& check, fcap::Instant& at) {
  const fcap::Candidate candidate{offer.campaign, offer.creative};
  switch (parts_.tier) {
    case Tier::kNothing:
      break;
    case Tier::kLocal:
      parts_.checker.note_shown({request.user, candidate, id, at});
      break;
    case Tier::kShared:
    case Tier::kPage:
      parts_.checker.note_shown({request.user, candidate, id, at, check.token},
                                fcap::Note::kEverywhere);
      break;
    case Tier::kReserve: {
      const fcap::HardResult place = parts_.checker.hard(
          {fcap::HardCall::kReserve, {request.user, candidate, id, at, check.token}});
      // Whatever became of a call without an answer, nobody shows this id.
      if (place.unknown)
        parts_.checker.hard({fcap::HardCall::kRelease, {request.user, candidate, id}});
      if (place.allowed) at = place.time;
      return place.allowed;
    }
  }
  return true;
}

void Server::show(ShownOffer shown, Delay beacon) {
  if (beacon == Delay::zero()) return publish(shown);
  beacons_.send_after(beacon, [this, shown = std::move(shown)] { publish(shown); });
}

void Server::publish(const ShownOffer& shown) {
  LiveCounters& counters = parts_.counters;
  const bool unread = shown.reason != fcap::Reason::kPassed;
  const bool published =
      parts_.producer.publish({.user = shown.user,
                               .campaign = shown.offer.campaign,
                               .creative = shown.offer.creative,
                               .id = shown.id,
                               .at = shown.at,
                               .reason = unread ? to_string(shown.reason) : std::string_view()});
  if (!published) give_back(shown);
  (published ? counters.shown : counters.not_published).fetch_add(1, std::memory_order_relaxed);
  if (published && unread) {
    counters.shown_fail_open.fetch_add(1, std::memory_order_relaxed);
  }
}

// Otherwise the user would be capped for an impression that nobody has heard of.
void Server::give_back(const ShownOffer& shown) {
  const fcap::Candidate candidate{shown.offer.campaign, shown.offer.creative};
  if (parts_.tier == Tier::kReserve) {
    parts_.checker.hard({fcap::HardCall::kRelease, {shown.user, candidate, shown.id}});
  } else if (parts_.tier != Tier::kNothing) {
    parts_.checker.take_back_shown({shown.user, candidate, shown.id});
  }
}

}  // namespace ad_server
