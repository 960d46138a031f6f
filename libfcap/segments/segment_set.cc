#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include <roaring/roaring.hh>

#include <fcap/segment_set.h>

#include "ledger/ids.h"
#include "segments/id_dictionary.h"
#include "segments/number_set.h"
#include "segments/number_table.h"
#include "segments/numeric_id.h"
#include "segments/packed_bitmap.h"

namespace fcap {
namespace {

struct Segment {
  segments::NumberSet numbers;    // ids that are canonical decimals, but for
  segments::PackedBitmap strays;  // the NumberTable's numbers of those without neighbours
  segments::PackedBitmap names;   // the IdDictionary's numbers of all other ids
  SegmentSet::Memory memory;
};

// While it is collected.
struct Collected {
  segments::NumberSet numbers;
  Roaring names;
};

Status check_id(const char* what, std::string_view id) {
  if (!id.empty() && id.size() <= ledger::kIdBytesMax) return {};
  return Status::error(
      StatusCode::kInvalidArgument,
      std::string(what) + ": must have 1 to 256 bytes, has " + std::to_string(id.size()));
}

}  // namespace

struct SegmentSet::SegmentSetParts {
  std::uint64_t version = 0;
  std::uint64_t serial = 0;
  std::vector<std::string> names;
  std::vector<Segment> segments;  // as names
  segments::IdDictionary dictionary;
  segments::NumberTable table;
  Memory memory;

  // While it is collected.
  std::map<std::string, Collected, std::less<>> collected;
  std::map<std::string, Collected, std::less<>>::iterator last = collected.end();

  // Members mostly come segment by segment.
  Collected& segment(std::string_view name) {
    if (last != collected.end() && last->first == name) return last->second;
    last = collected.find(name);
    if (last == collected.end()) last = collected.emplace(std::string(name), Collected{}).first;
    return last->second;
  }

  void settle();
  void measure();
};

void SegmentSet::SegmentSetParts::settle() {
  std::vector<std::vector<std::uint64_t>> strays;
  for (auto& [name, members] : collected) {
    names.push_back(name);
    strays.push_back(members.numbers.finish());
    segments.push_back({.numbers = std::move(members.numbers),
                        .strays = {},
                        .names = segments::PackedBitmap(members.names),
                        .memory = {}});
  }
  last = collected.end();
  collected.clear();
  std::vector<std::uint64_t> all;
  for (const auto& some : strays) {
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  table = segments::NumberTable(all);
  dictionary.shrink();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    Roaring entries;
    for (const std::uint64_t number : strays[i]) entries.add(*table.find(number));
    segments[i].strays = segments::PackedBitmap(entries);
  }
}

void SegmentSet::SegmentSetParts::measure() {
  for (Segment& segment : segments) {
    segment.memory.members = segment.numbers.size() + segment.strays.size() + segment.names.size();
    segment.memory.bitmap_bytes =
        sizeof segment + segment.numbers.bytes() + segment.strays.bytes() + segment.names.bytes();
    memory.members += segment.memory.members;
    memory.bitmap_bytes += segment.memory.bitmap_bytes;
  }
  memory.dictionary_bytes = dictionary.bytes() + table.bytes();
}

SegmentSet::SegmentSet(std::unique_ptr<SegmentSetParts> parts) : parts_(std::move(parts)) {}
SegmentSet::~SegmentSet() = default;

std::uint64_t SegmentSet::version() const noexcept {
  return parts_->version;
}
std::uint64_t SegmentSet::serial() const noexcept {
  return parts_->serial;
}
const std::vector<std::string>& SegmentSet::names() const noexcept {
  return parts_->names;
}
const SegmentSet::Memory& SegmentSet::memory() const noexcept {
  return parts_->memory;
}
const SegmentSet::Memory& SegmentSet::memory(std::uint32_t segment) const noexcept {
  return parts_->segments[segment].memory;
}

std::optional<std::uint32_t> SegmentSet::index_of(std::string_view segment) const noexcept {
  const auto& names = parts_->names;
  const auto at = std::lower_bound(names.begin(), names.end(), segment);
  if (at == names.end() || *at != segment) return std::nullopt;
  return static_cast<std::uint32_t>(at - names.begin());
}

SegmentSet::User SegmentSet::look_up(std::string_view user_id) const noexcept {
  User user;
  std::optional<std::uint32_t> entry;
  if (const auto number = segments::canonical_decimal(user_id)) {
    user.number_ = *number;
    user.is_number_ = true;
    entry = parts_->table.find(*number);
  } else {
    entry = parts_->dictionary.find(user_id);
  }
  user.has_entry_ = entry.has_value();
  user.entry_ = entry.value_or(0);
  return user;
}

bool SegmentSet::contains(std::uint32_t segment, const User& user) const noexcept {
  const Segment& asked = parts_->segments[segment];
  if (!user.is_number_) return user.has_entry_ && asked.names.contains(user.entry_);
  // Asked last, because `numbers` reads memory: nothing then waits for its answer.
  return (user.has_entry_ && asked.strays.contains(user.entry_)) ||
         asked.numbers.contains(user.number_);
}

bool SegmentSet::contains(std::string_view segment, std::string_view user_id) const noexcept {
  const auto index = index_of(segment);
  return index && contains(*index, look_up(user_id));
}

SegmentSetBuilder::SegmentSetBuilder() : parts_(std::make_unique<SegmentSet::SegmentSetParts>()) {}
SegmentSetBuilder::~SegmentSetBuilder() = default;

Status SegmentSetBuilder::name(std::string_view segment) {
  if (Status status = check_id("segment name", segment); !status.ok()) return status;
  parts_->segment(segment);
  return {};
}

Status SegmentSetBuilder::add(std::string_view segment, std::string_view user_id) {
  if (Status status = check_id("segment name", segment); !status.ok()) return status;
  if (Status status = check_id("user id", user_id); !status.ok()) return status;
  Collected& target = parts_->segment(segment);
  if (const auto number = segments::canonical_decimal(user_id)) {
    target.numbers.add(*number);
  } else {
    target.names.add(parts_->dictionary.add(user_id));
  }
  return {};
}

Status SegmentSetBuilder::add_bitmap(std::string_view segment,
                                     std::string_view portable_roaring64) {
  if (Status status = check_id("segment name", segment); !status.ok()) return status;
  return parts_->segment(segment).numbers.add_bitmap(portable_roaring64);
}

std::shared_ptr<const SegmentSet> SegmentSetBuilder::finish(std::uint64_t version) && {
  static std::atomic<std::uint64_t> serials{0};
  parts_->version = version;
  parts_->serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
  parts_->settle();
  parts_->measure();
  // The constructor is private, so std::make_shared cannot reach it.
  return std::shared_ptr<const SegmentSet>(new SegmentSet(std::move(parts_)));
}

}  // namespace fcap
