#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

#include "traffic.h"

namespace ad_server {
namespace {

using std::chrono::steady_clock;

// As bench/over_delivery simulates people, but this many times as fast: a page each half second.
constexpr double kFaster = 30;
constexpr double kPagesPerSecond = kFaster * 4 / 60;
constexpr int kPagesMax = 20;
constexpr int kSlots = 2;

steady_clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

// All servers draw the same people, and each serves the slots that chance sends to it.
class PeopleTraffic final : public Traffic {
 public:
  explicit PeopleTraffic(const PeopleOptions& options)
      : options_(options), requests_(options.workers), next_(options.workers, 0) {
    if (options.campaigns.empty()) throw std::runtime_error("--campaigns: there must be some");
    for (std::size_t user = 0; user < options.users; ++user) add_session(user);
    for (auto& requests : requests_) {
      std::ranges::stable_sort(requests, {}, &AdRequest::due);
    }
  }

  std::optional<AdRequest> next(std::size_t worker) override {
    auto& requests = requests_.at(worker);
    if (next_[worker] == requests.size()) return std::nullopt;
    return std::move(requests[next_[worker]++]);
  }

 private:
  void add_session(std::size_t user) {
    std::mt19937_64 random(std::uint64_t{options_.seed} * 1'000'003U + user);
    std::uniform_int_distribution<std::size_t> wanted_by(1, options_.campaigns.size());
    std::uniform_real_distribution<double> begins(0, static_cast<double>(options_.length.count()));
    std::uniform_int_distribution<int> pages(1, kPagesMax);
    std::exponential_distribution<double> between_pages(kPagesPerSecond);
    AdRequest slot;
    slot.user = options_.user_prefix + std::to_string(user);
    for (std::size_t i = wanted_by(random); i > 0; --i) {
      slot.offers.insert(slot.offers.begin(), {options_.campaigns[i - 1], {}});
    }
    double page_at = begins(random);
    for (int page = pages(random); page > 0; --page) {
      slot.due = options_.start + from_seconds(page_at);
      add_page(user, slot, random);
      page_at += between_pages(random);
    }
  }

  void add_page(std::size_t user, AdRequest slot, std::mt19937_64& random) {
    std::uniform_int_distribution<std::size_t> any_server(0, options_.servers - 1);
    std::lognormal_distribution<double> beacon_seconds(0, 1.462);  // 99 % are below 30 s
    std::size_t server = 0;
    for (int i = 0; i < kSlots; ++i) {
      const std::size_t drawn = any_server(random);
      const auto beacon = from_seconds(std::min(beacon_seconds(random), 60.0) / kFaster);
      if (options_.whole_pages && i > 0) {
        slot.beacons.push_back(beacon);
      } else {
        server = drawn;
        slot.beacons = {beacon};
      }
      const bool complete = !options_.whole_pages || i + 1 == kSlots;
      if (complete && server == options_.server) {
        requests_[user % options_.workers].push_back(slot);
      }
      slot.due += options_.slots_apart;
    }
  }

  PeopleOptions options_;
  std::vector<std::vector<AdRequest>> requests_;  // by worker
  std::vector<std::size_t> next_;
};

}  // namespace

std::unique_ptr<Traffic> make_people_traffic(const PeopleOptions& options) {
  return std::make_unique<PeopleTraffic>(options);
}

}  // namespace ad_server
