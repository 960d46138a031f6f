#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap::cli {

/// A candidate with strings of its own.
struct CandidateText {
  std::string campaign;
  std::string creative;

  [[nodiscard]] Candidate view() const noexcept { return {campaign, creative}; }
  /// As on the command line: "c456/cr9".
  [[nodiscard]] std::string text() const;
};

/// One check as it is asked on the command line or in a line of input.
struct CheckQuestion {
  std::string user;
  std::vector<CandidateText> candidates;
  std::vector<std::string> segments;
  /// Absent: now.
  std::optional<Instant> at;
  /// The line's "id" member as JSON, given back with the answer; empty: it has none.
  std::string id_json;
  /// What a person should know about it; empty: nothing.
  std::string warning;
};

/// "c456" or "c456/cr9"; what follows the first slash is the creative.
Result<CandidateText> parse_candidate(std::string_view text);

/// What a line of input asks about.
enum class Asks : std::uint8_t { kCandidates, kUserOnly };

/// Reads {"user":"u1","candidates":["c1","c2/cr9",{"campaign":"c/3","creative":"cr1"}],
/// "at":1700000000000,"segments":["gold"],"id":…}.
///
/// "at" is milliseconds or RFC 3339. A user that is null is the empty one. Unknown members are
/// ignored. Any bytes are safe.
Result<CheckQuestion> parse_question(std::string_view line, Asks asks = Asks::kCandidates);

}  // namespace fcap::cli
