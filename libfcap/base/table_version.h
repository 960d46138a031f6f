#pragma once

#include <cstdint>
#include <string>

namespace fcap::base {

/// Names one state of the tables that a version row stands for, and goes wherever the rules or
/// segments that were read from it go: two are equal when there is nothing new to read.
struct TableVersion {
  std::uint64_t version = 0;
  /// As PostgreSQL prints it in UTC. Tells apart two histories that reached the same number, as
  /// after a restored backup. Empty: not from tables.
  std::string changed_at = {};
  /// A shrink up to this version is meant; 0: none is.
  std::uint64_t accepted_version = 0;
  /// How many rows were left out of what was read. A version row itself says 0, so whoever has less
  /// than the tables hold never takes it for all of them, and a start reads them to know what is
  /// wrong there.
  std::uint64_t rows_left_out = 0;

  [[nodiscard]] bool from_tables() const noexcept { return !changed_at.empty(); }
  bool operator==(const TableVersion&) const = default;
};

}  // namespace fcap::base
