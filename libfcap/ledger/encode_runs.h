#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fcap/time.h>

#include "ledger/format.h"
#include "ledger/ledger.h"

namespace fcap::ledger::format {

/// Everything that the size of a runs frame depends on.
struct RunsShape {
  std::size_t runs = 0;
  std::size_t entries = 0;
  std::size_t escape_bytes = 0;  ///< varints of runs that are too long for their nibble
  bool has_type[4] = {};
  std::size_t creatives = 0;  ///< distinct
  Instant oldest = Instant::max();
  Instant newest = Instant::min();

  void add_run(EventType type, std::uint64_t length) noexcept;
  void add_time(Instant time) noexcept;

  [[nodiscard]] bool mixed_types() const noexcept;
  [[nodiscard]] std::uint32_t base_s() const noexcept;
  /// The narrowest width that holds all times.
  [[nodiscard]] std::size_t time_bytes() const noexcept;
  [[nodiscard]] std::size_t payload_bytes() const noexcept;
  /// Header included; 0 when there is no entry, because then there is no frame.
  [[nodiscard]] std::size_t frame_bytes() const noexcept;
};

/// Appends the runs frame that holds all entries of the ledger; nothing when there are none.
void append_runs(const Ledger& ledger, std::string& out);

/// What append_reservation() of encode.h appends.
[[nodiscard]] std::size_t frame_bytes(const Reservation& reservation) noexcept;

/// Appends a frame that holds one instant.
void append_marker(Tag tag, Instant instant, std::string& out);

}  // namespace fcap::ledger::format
