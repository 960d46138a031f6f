#include <cmath>
#include <random>

#include "traffic.h"

namespace ad_server {
namespace {

using std::chrono::steady_clock;

class SyntheticTraffic final : public Traffic {
 public:
  explicit SyntheticTraffic(const SyntheticOptions& options)
      : options_(options), start_(steady_clock::now()) {
    workers_.reserve(options.workers);
    for (std::size_t i = 0; i < options.workers; ++i) {
      workers_.push_back(Worker{std::mt19937_64(std::uint64_t{options.seed} * 7919U + i), 0});
    }
    gap_ = std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(
        static_cast<double>(options.workers) / options.requests_per_second));
  }

  std::optional<AdRequest> next(std::size_t worker) override {
    Worker& self = workers_.at(worker);
    AdRequest request;
    request.due = start_ + gap_ * self.sent++;
    if (request.due - start_ >= options_.length) return std::nullopt;
    request.user = user_of(self, worker);
    std::uniform_int_distribution<std::size_t> pick(0, options_.campaigns.size() - 1);
    for (std::size_t i = 0; i < options_.candidates; ++i) {
      request.offers.push_back({options_.campaigns[pick(self.random)], {}});
    }
    return request;
  }

 private:
  struct Worker {
    std::mt19937_64 random;
    std::int64_t sent;
  };

  // The square of a uniform number: a tenth of the users has about a third of the page views. A
  // user belongs to one worker, so that his impressions are published in the order of his checks.
  std::string user_of(Worker& self, std::size_t worker) {
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    const double draw = uniform(self.random);
    const std::size_t per_worker = std::max<std::size_t>(1, options_.users / options_.workers);
    const auto index = static_cast<std::size_t>(draw * draw * static_cast<double>(per_worker));
    return options_.user_prefix + std::to_string(index * options_.workers + worker);
  }

  SyntheticOptions options_;
  steady_clock::time_point start_;
  steady_clock::duration gap_{};
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<Traffic> make_synthetic_traffic(const SyntheticOptions& options) {
  return std::make_unique<SyntheticTraffic>(options);
}

}  // namespace ad_server
