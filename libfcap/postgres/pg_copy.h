#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/status.h>

namespace fcap::postgres {

/// What a column holds; none is NULL.
using Cell = std::optional<std::string_view>;

/// Takes apart what COPY … TO STDOUT (FORMAT binary) sends: rows of cells, text and bytes as they
/// are. Any bytes are safe.
///
/// Not thread-safe.
class CopiedRows {
 public:
  /// The cells are valid during the call. A failure ends the reading.
  using TakeRow = std::function<Status(std::span<const Cell> cells)>;

  CopiedRows(std::size_t columns, TakeRow take_row)
      : columns_(columns), take_row_(std::move(take_row)) {}

  /// A message holds whole rows; before the first row stands a header.
  Status read(std::string_view message);

 private:
  Status take_row(std::string_view& rest);

  std::size_t columns_;
  TakeRow take_row_;
  std::vector<Cell> cells_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace fcap::postgres
