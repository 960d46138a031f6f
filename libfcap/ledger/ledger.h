#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/rule.h>
#include <fcap/time.h>

namespace fcap::ledger {

/// One event as a record holds it. Its identity is (campaign, type, fingerprint).
struct Entry {
  Instant time;
  std::uint64_t campaign = 0;  ///< id_hash() of the campaign's id
  std::uint64_t creative = 0;  ///< id_hash() of the creative's id; 0: none
  EventType type = EventType::kImpression;
  std::uint32_t fingerprint = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// The entries of one campaign and type: [begin, end) in the Ledger's columns.
struct Run {
  std::uint64_t campaign = 0;
  EventType type = EventType::kImpression;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// How far decoding got.
enum class DecodeCode : std::uint8_t {
  kOk,
  kTruncated,  ///< a frame is longer than what is left
  kMalformed,  ///< a frame's payload does not hold what its tag says
};

/// A user's history, decoded: the union of all entries of a record, each identity once, by column.
/// The buffers are kept between decodes, so a Ledger that is used again does not allocate.
///
/// Not thread-safe; one Ledger a thread.
class Ledger {
 public:
  /// Replaces the contents by those of `record` (which may be empty: no history). Entries at or
  /// before an erased-before marker are left out. Any bytes are safe. When the code is not kOk the
  /// ledger is empty.
  DecodeCode decode(std::string_view record) noexcept;

  void clear() noexcept;

  /// Adds one entry by the merge rule: of one identity the later time wins; of equal times a
  /// present creative beats an absent one, then the larger hash.
  void merge(const Entry& entry);

  /// Adds everything of another ledger, markers included.
  void merge(const Ledger& other);

  /// Sorted by (campaign, type), each pair once.
  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
  /// The columns: within a run ascending by (time, fingerprint).
  [[nodiscard]] std::span<const Instant> times() const noexcept { return times_; }
  [[nodiscard]] std::span<const std::uint64_t> creatives() const noexcept { return creatives_; }
  [[nodiscard]] std::span<const std::uint32_t> fingerprints() const noexcept {
    return fingerprints_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size(); }
  [[nodiscard]] bool empty() const noexcept { return times_.empty(); }
  [[nodiscard]] Entry entry(const Run& run, std::uint32_t index) const noexcept;

  /// Entries at or before this instant are erased for ever.
  [[nodiscard]] std::optional<Instant> erased_before() const noexcept { return erased_before_; }
  /// Entries before this instant may be missing: the record was trimmed for size.
  [[nodiscard]] std::optional<Instant> complete_since() const noexcept { return complete_since_; }
  /// The newest entry's time; none when empty.
  [[nodiscard]] std::optional<Instant> newest() const noexcept;
  /// Frames with a tag that this version does not know, skipped.
  [[nodiscard]] std::uint32_t unknown_frames() const noexcept { return unknown_frames_; }

 private:
  std::vector<Run> runs_;
  std::vector<Instant> times_;
  std::vector<std::uint64_t> creatives_;
  std::vector<std::uint32_t> fingerprints_;
  std::optional<Instant> erased_before_;
  std::optional<Instant> complete_since_;
  std::uint32_t unknown_frames_ = 0;
};

}  // namespace fcap::ledger
