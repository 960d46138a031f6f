#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <roaring/roaring64map.hh>

#include <fcap/segment_set.h>

#include "ledger/ids.h"
#include "segments/id_dictionary.h"
#include "segments/numeric_id.h"

namespace fcap {
namespace {

struct Segment {
  Roaring64Map numbers;  // ids that are canonical decimals
  Roaring names;         // IdDictionary's numbers of the others
};

Status check_id(const char* what, std::string_view id) {
  if (!id.empty() && id.size() <= ledger::kIdBytesMax) return {};
  return Status::error(
      StatusCode::kInvalidArgument,
      std::string(what) + ": must have 1 to 256 bytes, has " + std::to_string(id.size()));
}

}  // namespace

struct SegmentSet::Parts {
  std::uint64_t version = 0;
  std::map<std::string, Segment, std::less<>> segments;
  std::vector<std::string> names;
  segments::IdDictionary dictionary;

  Segment& segment(std::string_view name) {
    auto at = segments.find(name);
    if (at == segments.end()) at = segments.emplace(std::string(name), Segment{}).first;
    return at->second;
  }

  /// An id, looked up once for any number of segments.
  struct User {
    std::optional<std::uint64_t> number;
    std::optional<std::uint32_t> name;
  };
  [[nodiscard]] User look_up(std::string_view user_id) const noexcept {
    User user{segments::canonical_decimal(user_id), std::nullopt};
    if (!user.number) user.name = dictionary.find(user_id);
    return user;
  }
  [[nodiscard]] bool contains(std::string_view segment_name, const User& user) const noexcept {
    const auto at = segments.find(segment_name);
    if (at == segments.end()) return false;
    if (user.number) return at->second.numbers.contains(*user.number);
    return user.name && at->second.names.contains(*user.name);
  }
};

SegmentSet::SegmentSet(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SegmentSet::~SegmentSet() = default;

std::uint64_t SegmentSet::version() const noexcept {
  return parts_->version;
}
const std::vector<std::string>& SegmentSet::names() const noexcept {
  return parts_->names;
}

bool SegmentSet::knows(std::string_view segment) const noexcept {
  return parts_->segments.find(segment) != parts_->segments.end();
}

bool SegmentSet::contains(std::string_view segment, std::string_view user_id) const noexcept {
  return parts_->contains(segment, parts_->look_up(user_id));
}

void SegmentSet::test(std::string_view user_id, const std::string_view* segments, bool* member,
                      std::size_t count) const noexcept {
  const Parts::User user = parts_->look_up(user_id);
  for (std::size_t i = 0; i < count; ++i) member[i] = parts_->contains(segments[i], user);
}

SegmentSet::Memory SegmentSet::memory() const noexcept {
  Memory memory;
  for (const auto& [name, segment] : parts_->segments) {
    memory.members += segment.numbers.cardinality() + segment.names.cardinality();
    memory.bitmap_bytes += segment.numbers.getSizeInBytes() + segment.names.getSizeInBytes();
  }
  memory.dictionary_bytes = parts_->dictionary.bytes();
  return memory;
}

SegmentSetBuilder::SegmentSetBuilder() : parts_(std::make_unique<SegmentSet::Parts>()) {}
SegmentSetBuilder::~SegmentSetBuilder() = default;

Status SegmentSetBuilder::name(std::string_view segment) {
  if (Status status = check_id("segment name", segment); !status.ok()) return status;
  parts_->segment(segment);
  return {};
}

Status SegmentSetBuilder::add(std::string_view segment, std::string_view user_id) {
  if (Status status = check_id("segment name", segment); !status.ok()) return status;
  if (Status status = check_id("user id", user_id); !status.ok()) return status;
  Segment& target = parts_->segment(segment);
  if (const auto number = segments::canonical_decimal(user_id)) {
    target.numbers.add(*number);
  } else {
    target.names.add(parts_->dictionary.add(user_id));
  }
  return {};
}

std::shared_ptr<const SegmentSet> SegmentSetBuilder::finish(std::uint64_t version) && {
  parts_->version = version;
  parts_->dictionary.shrink();
  for (auto& [name, segment] : parts_->segments) {
    parts_->names.push_back(name);
    segment.numbers.runOptimize();
    segment.numbers.shrinkToFit();
    segment.names.runOptimize();
    segment.names.shrinkToFit();
  }
  // The constructor is private, so std::make_shared cannot reach it.
  return std::shared_ptr<const SegmentSet>(new SegmentSet(std::move(parts_)));
}

}  // namespace fcap
