#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/time.h>

namespace ad_server {

/// What the server is about to show, if the cap allows.
struct AdOffer {
  std::string campaign;
  std::string creative;
};

/// One page view: a user, and the ads that could be shown, best first.
struct AdRequest {
  std::string user;
  std::vector<AdOffer> offers;
  /// When it is due, for an open loop: a late server does not slow the arrivals down.
  std::chrono::steady_clock::time_point due;
  /// The instant that it is judged and counted at; absent: now.
  std::optional<fcap::Instant> at;
  /// How long the beacon of each slot to be filled takes; empty: there is one slot, whose
  /// impression is published at once.
  std::vector<std::chrono::steady_clock::duration> beacons;
};

/// Where page views come from. Each worker asks with its own number and gets its own users, in
/// order.
class Traffic {
 public:
  virtual ~Traffic() = default;
  /// The worker's next request; nothing when there are no more.
  virtual std::optional<AdRequest> next(std::size_t worker) = 0;
};

struct SyntheticOptions {
  std::string user_prefix;
  std::size_t users = 2000;
  std::size_t candidates = 10;
  double requests_per_second = 4000;
  std::chrono::seconds length{20};
  std::size_t workers = 2;
  std::vector<std::string> campaigns;
  unsigned seed = 1;
};

/// Users with a heavy head: some see many pages, most a few.
std::unique_ptr<Traffic> make_synthetic_traffic(const SyntheticOptions& options);

struct PeopleOptions {
  std::string user_prefix;
  std::size_t users = 2000;
  std::size_t server = 0;  ///< this one's number
  std::size_t servers = 1;
  std::size_t workers = 2;
  std::chrono::steady_clock::time_point start;
  std::chrono::seconds length{20};  ///< sessions begin within this time
  std::chrono::milliseconds slots_apart{5};
  bool whole_pages = false;            ///< all slots of a page in one request
  std::vector<std::string> campaigns;  ///< each user is wanted by the first so many
  unsigned seed = 1;
};

/// People in sessions of 1 to 20 pages with two slots each, whose every slot asks any of the
/// servers, and whose beacons take their time: as bench/over_delivery simulates them, 30 times as
/// fast. Throws std::runtime_error without campaigns.
std::unique_ptr<Traffic> make_people_traffic(const PeopleOptions& options);

struct LogOptions {
  /// user,campaign,creative,unix seconds; with a header line; gzip or plain; sorted by time.
  std::string path;
  std::string user_prefix;
  /// The whole log is played in this time, each row judged at its own (shifted) instant.
  std::chrono::seconds length{20};
  std::size_t workers = 2;
};

/// An impression log played again, its times shifted so that it ends now. Throws std::runtime_error
/// naming the file and line when it cannot be read.
std::unique_ptr<Traffic> make_log_traffic(const LogOptions& options);

}  // namespace ad_server
