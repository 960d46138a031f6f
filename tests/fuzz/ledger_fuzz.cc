// Any bytes as a record: decoding is safe, and what can be read means the same after compaction,
// after a size trim as far as it claims, and merged with itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/encode.h"
#include "ledger/ledger.h"

namespace fcap::ledger {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_consistent(const Ledger& ledger) {
  std::uint32_t next = 0;
  for (std::size_t r = 0; r < ledger.runs().size(); ++r) {
    const Run& run = ledger.runs()[r];
    require(run.begin == next && run.begin < run.end);
    next = run.end;
    if (r > 0) {
      const Run& previous = ledger.runs()[r - 1];
      require(previous.campaign < run.campaign ||
              (previous.campaign == run.campaign && previous.type < run.type));
    }
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const Instant time = ledger.times()[i];
      require(!ledger.erased_before() || *ledger.erased_before() < time);
      if (i == run.begin) continue;
      require(ledger.times()[i - 1] < time ||
              (ledger.times()[i - 1] == time &&
               ledger.fingerprints()[i - 1] < ledger.fingerprints()[i]));
    }
  }
  require(next == ledger.size());
}

bool equal(const Ledger& a, const Ledger& b) {
  if (a.size() != b.size() || a.runs().size() != b.runs().size()) return false;
  for (std::size_t r = 0; r < a.runs().size(); ++r) {
    const Run& run = a.runs()[r];
    if (b.runs()[r].end != run.end) return false;
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (a.entry(run, i) != b.entry(b.runs()[r], i)) return false;
    }
  }
  return true;
}

// Times of 1970 are over by the fuzzer's clock.
bool equal_rare(const Ledger& a, const Ledger& b) {
  std::vector<Reservation> of_a;
  std::vector<Reservation> of_b;
  const auto live = [](const Reservation& at) { return at.released || at.expires > Instant{}; };
  std::copy_if(a.reservations().begin(), a.reservations().end(), std::back_inserter(of_a), live);
  std::copy_if(b.reservations().begin(), b.reservations().end(), std::back_inserter(of_b), live);
  return of_a == of_b;
}

void require_record_survives(std::string_view record) {
  static Ledger ledger;
  require(compacted_bytes(record) <= record.size());
  if (ledger.decode(record) != DecodeCode::kOk) {
    require(ledger.reservations().empty());
    require(ledger.empty() && !ledger.erased_before() && !ledger.complete_since());
    return;
  }
  require_consistent(ledger);

  const std::string compacted =
      compact(ledger, record, {.trim_now = {}, .record_bytes_max = 1U << 24U}).record;
  require(compacted_bytes(compacted) == compacted.size());
  Ledger again;
  require(again.decode(compacted) == DecodeCode::kOk && equal(again, ledger));
  require(equal_rare(again, ledger));
  require(again.complete_since() == ledger.complete_since());
  require(again.unknown_frames() == ledger.unknown_frames());

  again.merge(ledger);
  require(equal(again, ledger) && equal_rare(again, ledger));

  const CompactOptions small{.trim_now = {}, .record_bytes_max = 96};
  const std::string trimmed = compact(ledger, record, small).record;
  require(trimmed.size() <= 96);
  require(again.decode(trimmed) == DecodeCode::kOk);
  require(compact(again, trimmed, small).record == trimmed);
}

}  // namespace
}  // namespace fcap::ledger

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fcap::ledger::require_record_survives({reinterpret_cast<const char*>(data), size});
  return 0;
}
