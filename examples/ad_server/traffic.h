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
