#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fcap/checker.h>

namespace fcap::chaos {

/// One line of standard input, in words: NUMBER CALL USER and what the call needs.
struct Question {
  std::string number;
  std::string call;
  std::string user;
  std::vector<std::string> words;
};

Question read_question(const std::string& line);

/// Makes the call, and says what it answered and how late: a line of standard output. The time that
/// a check in front of a hard call takes is not the call's. An unknown call or a missing word ends
/// the program.
std::string answer(Checker& checker, const Question& question, std::chrono::microseconds deadline);

/// How long ago that was; 0 if it is still to come.
std::int64_t microseconds_since(std::chrono::steady_clock::time_point due);

}  // namespace fcap::chaos
