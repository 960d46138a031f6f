#include "updater/session_stream.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace fcap::bench {
namespace {

constexpr std::uint32_t kPagesMax = 8;
constexpr int kImpressionsMax = 4;  // of a page
constexpr double kPagesMean = (1 + kPagesMax) / 2.0;
constexpr double kImpressionsMean = (1 + kImpressionsMax) / 2.0;
// The logarithm of seconds: median 1 s, 99th percentile 30 s.
constexpr double kBeaconMean = 0;
constexpr double kBeaconDeviation = 1.462;
constexpr double kBeaconMaxMs = 60'000;
constexpr std::int64_t kPageMinMs = 5'000;
constexpr std::int64_t kPageMaxMs = 30'000;
constexpr std::int64_t kSessionMaxMs = (kPagesMax + 2) * kPageMaxMs;

std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

SessionStream::SessionStream(const SessionOptions& options)
    : options_(options),
      random_(options.seed),
      next_session_ms_(static_cast<double>(to_ms(options.start) - kSessionMaxMs)),
      between_sessions_ms_(1000.0 * kPagesMean * kImpressionsMean / options.events_per_second) {
  while (next_session_ms_ < static_cast<double>(to_ms(options_.start))) start_session();
}

void SessionStream::start_session() {
  std::uniform_int_distribution<std::uint64_t> user(0, options_.users - 1);
  std::uniform_int_distribution<std::uint32_t> pages(1, kPagesMax);
  std::exponential_distribution<double> wait(1.0 / between_sessions_ms_);
  const auto at_ms = static_cast<std::int64_t>(next_session_ms_);
  steps_.push({at_ms, at_ms, user(random_), pages(random_)});
  next_session_ms_ += wait(random_);
}

void SessionStream::open_page(const Step& page) {
  std::uniform_int_distribution<int> impressions(1, kImpressionsMax);
  std::lognormal_distribution<double> beacon_seconds(kBeaconMean, kBeaconDeviation);
  std::uniform_int_distribution<std::int64_t> next_page_ms(kPageMinMs, kPageMaxMs);
  for (int left = impressions(random_); left > 0; --left) {
    const double delay_ms = std::min(1000 * beacon_seconds(random_), kBeaconMaxMs);
    steps_.push({page.due_ms + static_cast<std::int64_t>(delay_ms), page.due_ms, page.user, 0});
  }
  if (page.pages_left > 1) {
    const std::int64_t at_ms = page.due_ms + next_page_ms(random_);
    steps_.push({at_ms, at_ms, page.user, page.pages_left - 1});
  }
}

SessionStream::Step SessionStream::pop() {
  while (steps_.empty() || static_cast<double>(steps_.top().due_ms) > next_session_ms_) {
    start_session();
  }
  const Step step = steps_.top();
  steps_.pop();
  return step;
}

Arrival SessionStream::next() {
  for (;;) {
    const Step step = pop();
    if (step.pages_left > 0) {
      open_page(step);
    } else if (step.due_ms >= to_ms(options_.start)) {
      std::uniform_int_distribution<std::uint64_t> campaign(0, options_.campaigns - 1);
      return {instant_from_ms(step.shown_ms), step.user, campaign(random_), number_++};
    }
  }
}

void append_uuid(std::string& out, std::uint64_t kind, std::uint64_t number) {
  const std::uint64_t high = mixed(number * 16 + kind * 2);
  const std::uint64_t low = mixed(number * 16 + kind * 2 + 1);
  fmt::format_to(std::back_inserter(out), "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", high >> 32U,
                 (high >> 16U) & 0xFFFFU, high & 0xFFFU, low >> 52U, low & 0xFFFFFFFFFFFFU);
}

std::string uuid(std::uint64_t kind, std::uint64_t number) {
  std::string text;
  append_uuid(text, kind, number);
  return text;
}

void write_message(const Arrival& arrival, std::string_view user_id, std::string& out) {
  out = R"({"user_id":")";
  out += user_id;
  fmt::format_to(std::back_inserter(out),
                 R"(","campaign_id":"campaign-{}","timestamp":{},"imp_id":")", arrival.campaign,
                 to_ms(arrival.time));
  append_uuid(out, kImpressionIds, arrival.number);
  out += R"("})";
}

}  // namespace fcap::bench
