#include "ledger/encode_runs.h"

#include <algorithm>
#include <vector>

namespace fcap::ledger::format {
namespace {

std::size_t type_bytes(const RunsShape& shape) noexcept {
  return shape.mixed_types() ? (shape.runs + 3) / 4 : 0;
}

std::vector<std::uint64_t> distinct_creatives(const Ledger& ledger) {
  std::vector<std::uint64_t> creatives;
  for (const std::uint64_t creative : ledger.creatives()) {
    if (creative != 0) creatives.push_back(creative);
  }
  std::sort(creatives.begin(), creatives.end());
  creatives.erase(std::unique(creatives.begin(), creatives.end()), creatives.end());
  return creatives;
}

RunsShape shape_of(const Ledger& ledger, std::size_t creatives) noexcept {
  RunsShape shape;
  shape.creatives = creatives;
  for (const Run& run : ledger.runs()) {
    shape.add_run(run.type, run.end - run.begin);
    shape.add_time(ledger.times()[run.begin]);
    shape.add_time(ledger.times()[run.end - 1]);
  }
  return shape;
}

std::uint8_t flags_of(const RunsShape& shape, const Ledger& ledger) noexcept {
  auto flags =
      static_cast<std::uint8_t>((shape.time_bytes() - kTimeWidthMin) << kRunsTimeWidthShift);
  if (shape.mixed_types()) {
    flags |= kRunsMixedTypes;
  } else {
    flags |= static_cast<std::uint8_t>(ledger.runs().front().type);
  }
  if (shape.creatives > 0) flags |= kRunsHaveCreatives;
  return flags;
}

void append_lengths(std::span<const Run> runs, std::string& out) {
  const auto nibble = [](const Run& run) {
    return std::min(run.end - run.begin - 1, kLengthEscape);
  };
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    const std::uint32_t high = i + 1 < runs.size() ? nibble(runs[i + 1]) : 0;
    out.push_back(static_cast<char>(nibble(runs[i]) | (high << 4U)));
  }
}

void append_types(std::span<const Run> runs, std::string& out) {
  for (std::size_t i = 0; i < runs.size(); i += 4) {
    unsigned byte = 0;
    for (std::size_t j = i; j < std::min(i + 4, runs.size()); ++j) {
      byte |= static_cast<unsigned>(runs[j].type) << ((j - i) * 2);
    }
    out.push_back(static_cast<char>(byte));
  }
}

void append_creatives(const Ledger& ledger, std::span<const std::uint64_t> dictionary,
                      std::string& out) {
  store_varint(dictionary.size(), out);
  for (const std::uint64_t creative : dictionary) store<kHashBytes>(creative, out);
  const std::size_t width = index_bytes(dictionary.size());
  for (const std::uint64_t creative : ledger.creatives()) {
    std::uint64_t index = 0;
    if (creative != 0) {
      const auto found = std::lower_bound(dictionary.begin(), dictionary.end(), creative);
      index = static_cast<std::uint64_t>(found - dictionary.begin()) + 1;
    }
    for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<char>(index >> (8 * i)));
  }
}

}  // namespace

void RunsShape::add_run(EventType type, std::uint64_t length) noexcept {
  ++runs;
  entries += length;
  if (length > kLengthEscape) escape_bytes += varint_bytes(length - kLengthEscape - 1);
  has_type[static_cast<std::size_t>(type)] = true;
}

void RunsShape::add_time(Instant time) noexcept {
  oldest = std::min(oldest, time);
  newest = std::max(newest, time);
}

bool RunsShape::mixed_types() const noexcept {
  return std::count(std::begin(has_type), std::end(has_type), true) > 1;
}

std::uint32_t RunsShape::base_s() const noexcept {
  return static_cast<std::uint32_t>(to_ms(oldest) / 1000);
}

std::size_t RunsShape::time_bytes() const noexcept {
  const std::int64_t base = to_ms(oldest) / 1000;
  if (base > std::int64_t{UINT32_MAX}) return kTimeWidthAbsolute;
  const auto span = static_cast<std::uint64_t>(to_ms(newest) - base * 1000);
  for (std::size_t width = kTimeWidthMin; width < kTimeWidthAbsolute; ++width) {
    if (span >> (8 * width) == 0) return width;
  }
  return kTimeWidthAbsolute;
}

std::size_t RunsShape::payload_bytes() const noexcept {
  const std::size_t width = time_bytes();
  std::size_t bytes = 1 + (width == kTimeWidthAbsolute ? 0 : kTimeBaseBytes);
  bytes += varint_bytes(runs) + (runs + 1) / 2 + type_bytes(*this) + escape_bytes;
  bytes += runs * kHashBytes + entries * (width + kFingerprintBytes);
  if (creatives > 0) {
    bytes += varint_bytes(creatives) + creatives * kHashBytes + entries * index_bytes(creatives);
  }
  return bytes;
}

std::size_t RunsShape::frame_bytes() const noexcept {
  if (entries == 0) return 0;
  const std::size_t payload = payload_bytes();
  return 1 + varint_bytes(payload) + payload;
}

void append_runs(const Ledger& ledger, std::string& out) {
  if (ledger.empty()) return;
  const std::vector<std::uint64_t> dictionary = distinct_creatives(ledger);
  const RunsShape shape = shape_of(ledger, dictionary.size());
  const std::size_t width = shape.time_bytes();
  const auto runs = ledger.runs();
  out.reserve(out.size() + shape.frame_bytes());
  out.push_back(static_cast<char>(Tag::kRuns));
  store_varint(shape.payload_bytes(), out);
  out.push_back(static_cast<char>(flags_of(shape, ledger)));
  if (width != kTimeWidthAbsolute) store<kTimeBaseBytes>(shape.base_s(), out);
  store_varint(runs.size(), out);
  append_lengths(runs, out);
  if (shape.mixed_types()) append_types(runs, out);
  for (const Run& run : runs) {
    const std::uint32_t length = run.end - run.begin;
    if (length > kLengthEscape) store_varint(length - kLengthEscape - 1, out);
  }
  for (const Run& run : runs) store<kHashBytes>(run.campaign, out);
  const std::int64_t base_ms =
      width == kTimeWidthAbsolute ? 0 : std::int64_t{shape.base_s()} * 1000;
  for (const Instant time : ledger.times()) {
    const auto offset = static_cast<std::uint64_t>(to_ms(time) - base_ms);
    out.append(reinterpret_cast<const char*>(&offset), width);
  }
  for (const std::uint32_t print : ledger.fingerprints()) store<kFingerprintBytes>(print, out);
  if (!dictionary.empty()) append_creatives(ledger, dictionary, out);
}

void append_marker(Tag tag, Instant instant, std::string& out) {
  out.push_back(static_cast<char>(tag));
  out.push_back(static_cast<char>(kTimeBytes));
  store<kTimeBytes>(static_cast<std::uint64_t>(to_ms(representable(instant))), out);
}

}  // namespace fcap::ledger::format
