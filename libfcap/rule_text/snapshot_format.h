#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include <xxhash.h>

#include <fcap/status.h>

#include "rule_text/snapshot.h"

/// The bytes of a snapshot, below its header line. docs/rules-json.md describes them.
namespace fcap::rule_text {

/// XXH3-64 of bytes that come one after the other.
class RunningHash {
 public:
  RunningHash() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void add(std::string_view bytes) noexcept {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

/// Takes bytes one after the other, and hands them on in large pieces.
class SnapshotOutput {
 public:
  /// Receives each piece; false ends the writing.
  using TakePiece = std::function<bool(std::string_view piece)>;

  explicit SnapshotOutput(TakePiece take_piece);

  void byte(unsigned value) { pending_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value, std::size_t bytes);
  /// Its length comes first.
  void text(std::string_view value);
  /// Hands on what is pending, once that is a piece.
  void end_of_record();
  /// Does the same, however little it is.
  void flush();

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_.value(); }

 private:
  TakePiece take_piece_;
  std::string pending_;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;
  RunningHash hash_;
};

/// Gives back what SnapshotOutput took, from bytes that come in pieces. Nothing is read beyond the
/// end: from there on it gives zeros and empty texts, and ok() is false.
class SnapshotInput {
 public:
  /// Puts bytes at `to`, at most `room` of them, and says how many; 0: there are no more.
  using GivePiece = std::function<std::size_t(char* to, std::size_t room)>;

  /// `bytes` is how many there are in all.
  SnapshotInput(std::uint64_t bytes, GivePiece give_piece);

  unsigned byte();
  std::uint64_t number(std::size_t bytes);
  std::string text();
  void mark_malformed() noexcept { ok_ = false; }

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// How many bytes have not been taken yet.
  [[nodiscard]] std::uint64_t left() const noexcept { return unread_ + buffered(); }
  /// Takes all that is left, and gives the hash of all bytes.
  std::uint64_t drain_and_hash();

 private:
  [[nodiscard]] std::size_t buffered() const noexcept { return end_ - at_; }
  /// Whether so many bytes stand at buffer_[at_].
  bool need(std::size_t bytes) { return buffered() >= bytes || refill(bytes); }
  bool refill(std::size_t bytes);

  GivePiece give_piece_;
  std::uint64_t unread_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  bool ok_ = true;
  RunningHash hash_;
};

void write_rules(const SnapshotView& rules, SnapshotOutput& output);

/// Any bytes are safe, and cost no more memory than a small multiple of their number. False: they
/// are not the bytes of a snapshot.
bool read_rules(SnapshotInput& input, base::TableVersion& version, rules::SpecSink& sink);

}  // namespace fcap::rule_text
