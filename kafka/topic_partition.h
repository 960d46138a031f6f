#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace fcap::kafka {

/// The topics that are read, each at its place.
using TopicNames = std::vector<std::string>;
enum class TopicIndex : std::int32_t {};

[[nodiscard]] inline const std::string& name_of(const TopicNames& topics, TopicIndex topic) {
  return topics.at(static_cast<std::size_t>(topic));
}

/// A partition of one of these topics.
struct TopicPartition {
  TopicIndex topic = {};
  std::int32_t number = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): which clang-tidy 14 says of every such operator
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

/// Of what concerns no partition of these topics.
inline constexpr TopicPartition kNoPartition{TopicIndex{-1}, -1};

}  // namespace fcap::kafka

/// For people: the number; behind the first topic, which of the topics it is, counted from 1.
template <>
struct fmt::formatter<fcap::kafka::TopicPartition> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const fcap::kafka::TopicPartition& partition, Context& context) const {
    const auto place = static_cast<std::int32_t>(partition.topic);
    if (place == 0) return fmt::format_to(context.out(), "{}", partition.number);
    return fmt::format_to(context.out(), "{} of topic {}", partition.number, place + 1);
  }
};
