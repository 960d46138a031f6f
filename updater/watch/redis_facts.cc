#include "updater/watch/redis_facts.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

// PEXPIRETIME, and PEXPIREAT with NX and GT.
constexpr int kRedisMajorMin = 7;

std::optional<std::uint64_t> info_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

void take_info_line(std::string_view name, std::string_view value, RedisFacts& facts) {
  if (name == "redis_version") facts.version = value;
  if (name == "role") facts.role = value;
  if (name == "maxmemory_policy") facts.eviction_policy = value;
  if (name == "maxmemory") facts.memory_max_bytes = info_number(value);
  if (name == "evicted_keys") facts.evicted_keys = info_number(value);
}

Finding redis_error(std::string text) {
  return {Finding::FindingLevel::kError, "redis", std::move(text)};
}

}  // namespace

RedisFacts parse_redis_info(std::string_view info) {
  RedisFacts facts;
  while (!info.empty()) {
    const std::size_t end = std::min(info.find('\n'), info.size());
    std::string_view line = info.substr(0, end);
    info.remove_prefix(std::min(end + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    take_info_line(line.substr(0, colon), line.substr(colon + 1), facts);
  }
  return facts;
}

Findings judge_redis(const RedisFacts& facts) {
  Findings findings;
  int major = 0;
  std::from_chars(facts.version.data(), facts.version.data() + facts.version.size(), major);
  if (!facts.version.empty() && major < kRedisMajorMin) {
    findings.push_back(redis_error(fmt::format(
        "the server is Redis {}: use 7.0 or later, which knows PEXPIRETIME and PEXPIREAT GT",
        facts.version)));
  }
  if (facts.role == "slave") {
    findings.push_back(redis_error(
        "the server is a replica: redis.addresses must name the master, which takes writes"));
  }
  if (facts.may_evict() && facts.memory_max_bytes.value_or(0) > 0) {
    findings.push_back(redis_error(
        fmt::format("maxmemory-policy is {}: set it to noeviction, because Redis deletes users' "
                    "records when it is full, and their caps no longer hold",
                    facts.eviction_policy)));
  } else if (facts.may_evict()) {
    findings.push_back(
        {Finding::FindingLevel::kWarning, "redis",
         fmt::format("maxmemory-policy is {}: set it to noeviction; nothing is deleted only "
                     "because maxmemory is 0",
                     facts.eviction_policy)});
  }
  if (facts.evicted_keys.value_or(0) > 0) {
    findings.push_back(
        {Finding::FindingLevel::kWarning, "redis",
         fmt::format("evicted_keys is {}: Redis has deleted keys since it was started; if they "
                     "were fcap's, run fcap-updater replay, which restores what is missing",
                     *facts.evicted_keys)});
  }
  if (findings.empty() && !facts.version.empty()) {
    findings.push_back(
        {Finding::FindingLevel::kOk, "redis",
         fmt::format("version {}, maxmemory-policy {}", facts.version, facts.eviction_policy)});
  }
  return findings;
}

}  // namespace fcap::updater
