#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include <fcap/subject.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// What one check may set. The views must outlive the call.
struct CheckOptions {
  /// From the call to the answer; absent: the Checker's. More than 60 s counts as 60 s. With 0 or
  /// less nothing is waited for: a check that needs the store answers kTimeout at once.
  std::optional<std::chrono::microseconds> deadline = {};
  /// The instant to judge at; absent: the Checker's clock.
  std::optional<Instant> now = {};
  /// Segments that the caller knows the user to be in, besides the stored ones.
  std::span<const std::string_view> segments = {};
  /// Whether check(), check_batch() and check_async() keep the record that they read in the token,
  /// so that a hard call that follows need not read it again.
  bool keep_record = false;
  /// With check_async(), an answer that is known at once is returned, and not called back.
  bool return_known = false;
};

/// One check of a batch. The views must outlive the call.
struct CheckRequest {
  Subject subject;
  std::span<const Candidate> candidates;
};

}  // namespace fcap
