#include "updater/marks/mark_value.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <xxhash.h>

#include "updater/process/invariant.h"

namespace fcap::updater {
namespace {

// Lower numbers are from before the first release.
constexpr std::string_view kVersionWord = "4";
constexpr std::size_t kMarkBytesMax = std::size_t{256} * 1024;  // every second slot: 48 KB
constexpr std::size_t kWordBytesMax = 64;
constexpr int kHexBase = 16;

// Takes the text before the next separator, and the separator.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

template <typename Number>
bool read_number(std::string_view text, Number& number, int base = 10) noexcept {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc{} && at == end;
}

void write_point(std::string& text, std::string_view name, const std::optional<LogPoint>& point) {
  if (!point) return;
  fmt::format_to(std::back_inserter(text), " {}={},{},{:016x}", name, point->offset,
                 point->timestamp_ms, point->hash);
}

bool read_point(std::string_view text, std::optional<LogPoint>& point) {
  LogPoint read;
  if (!read_number(next_part(text, ','), read.offset) ||
      !read_number(next_part(text, ','), read.timestamp_ms) ||
      !read_number(text, read.hash, kHexBase)) {
    return false;
  }
  point = read;
  return true;
}

bool read_gaps(std::string_view text, std::vector<Gap>& gaps) {
  while (!text.empty()) {
    std::string_view gap = next_part(text, ',');
    Gap read;
    if (!read_number(next_part(gap, '-'), read.from) || !read_number(gap, read.to)) return false;
    gaps.push_back(read);
  }
  return true;
}

bool read_places(std::string_view text, std::vector<int>& places) {
  while (!text.empty()) {
    if (!read_number(next_part(text, ','), places.emplace_back())) return false;
  }
  return true;
}

bool places_hold(const std::vector<int>& places) noexcept {
  constexpr std::size_t kPlacesMax = 2;
  if (places.size() == kPlacesMax && places.front() == places.back()) return false;
  return places.size() <= kPlacesMax && std::ranges::all_of(places, [](int place) {
           return place >= 0 && place < SlotSet::kSlots;
         });
}

bool is_plain_word(std::string_view word) noexcept {
  return word.size() <= kWordBytesMax &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool read_shard(std::string_view name, std::string_view value, MarkedShard& shard) {
  if (name == "node") return !(shard.node = value).empty();
  if (name == "replication") return !(shard.replication = value).empty();
  if (name == "arrivals") return (shard.arrivals_safe = value == "safe") || value == "unsure";
  if (name == "serial") return read_number(value, shard.serial);
  if (name == "places") return read_places(value, shard.places);
  const auto slots = name == "slots" || name == "partly" ? SlotSet::read(value) : std::nullopt;
  if (!slots || slots->empty()) return false;
  (name == "slots" ? shard.slots : shard.partly) = *slots;
  return true;
}

bool point_holds(const std::optional<LogPoint>& point, std::int64_t below) noexcept {
  return !point || (point->offset >= 0 && point->offset < below && point->timestamp_ms >= -1);
}

// Whether a mark is as described at MarkValue.
bool holds(const MarkValue& mark) noexcept {
  if (mark.position < 0 || mark.gaps.size() > MarkValue::kGapsMax) return false;
  if (!is_plain_word(mark.log.cluster)) return false;
  if (mark.shard && !places_hold(mark.shard->places)) return false;
  if (mark.shard && (!is_plain_word(mark.shard->node) || mark.shard->node.empty() ||
                     !is_plain_word(mark.shard->replication) || mark.shard->replication.empty())) {
    return false;
  }
  if (!point_holds(mark.log.last, mark.position)) return false;
  if (mark.log.checked && !mark.log.last) return false;
  if (mark.log.checked && !point_holds(mark.log.checked, mark.log.last->offset + 1)) return false;
  std::int64_t end = -1;
  for (const Gap& gap : mark.gaps) {
    if (gap.from <= end || gap.from < 0 || gap.to <= gap.from) return false;
    end = gap.to;
  }
  return end <= mark.position;
}

}  // namespace

std::string encode_mark(const MarkValue& mark) {
  must_hold(holds(mark), "a mark that is written can be read");
  std::string text = fmt::format("{} {}", kVersionWord, mark.position);
  if (const auto& shard = mark.shard) {
    fmt::format_to(std::back_inserter(text), " node={} replication={} arrivals={} serial={}",
                   shard->node, shard->replication, shard->arrivals_safe ? "safe" : "unsure",
                   shard->serial);
    std::string_view before = " places=";
    for (const int place : shard->places) {
      fmt::format_to(std::back_inserter(text), "{}{}", before, place);
      before = ",";
    }
    if (!shard->slots.empty()) text.append(" slots=").append(shard->slots.text());
    if (!shard->partly.empty()) text.append(" partly=").append(shard->partly.text());
  }
  if (!mark.log.cluster.empty()) text.append(" cluster=").append(mark.log.cluster);
  write_point(text, "last", mark.log.last);
  write_point(text, "checked", mark.log.checked);
  std::string_view before = " gaps=";
  for (const Gap& gap : mark.gaps) {
    fmt::format_to(std::back_inserter(text), "{}{}-{}", before, gap.from, gap.to);
    before = ",";
  }
  return text;
}

std::optional<MarkValue> decode_mark(std::string_view text) {
  std::string_view rest = text;
  MarkValue mark;
  if (text.size() > kMarkBytesMax || next_part(rest, ' ') != kVersionWord) return std::nullopt;
  if (!read_number(next_part(rest, ' '), mark.position)) return std::nullopt;
  while (!rest.empty()) {
    std::string_view value = next_part(rest, ' ');
    const std::string_view name = next_part(value, '=');
    const bool read =
        name == "cluster"   ? !(mark.log.cluster = value).empty()
        : name == "last"    ? read_point(value, mark.log.last)
        : name == "checked" ? read_point(value, mark.log.checked)
        : name == "gaps"    ? read_gaps(value, mark.gaps)
                         : read_shard(name, value, mark.shard ? *mark.shard : mark.shard.emplace());
    if (!read) return std::nullopt;
  }
  // Marks are compared by their bytes, so a value must have exactly one form.
  if (!holds(mark) || encode_mark(mark) != text) return std::nullopt;
  return mark;
}

std::string no_mark_text(std::string_view key) {
  return fmt::format(
      "{}: the value is no mark of fcap's: it counts as missing, and a mark is written in its "
      "place; it may be deleted",
      key);
}

std::string cluster_word(std::string_view cluster_id) {
  if (is_plain_word(cluster_id)) return std::string(cluster_id);
  return fmt::format("xxh3:{:016x}", XXH3_64bits(cluster_id.data(), cluster_id.size()));
}

std::uint64_t hash_message(std::string_view key, std::string_view payload) noexcept {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), XXH3_64bits(key.data(), key.size()));
}

std::string tagged_mark_key(std::string_view prefix, std::string_view tag, std::string_view whose) {
  return fmt::format("{}:!mark:{{{}}}:{}", prefix, tag, whose);
}

std::string mark_key(std::string_view prefix, std::string_view group, std::string_view topic,
                     std::int32_t partition) {
  return tagged_mark_key(prefix, "0", fmt::format("{}:{}:{}", group, topic, partition));
}

}  // namespace fcap::updater
