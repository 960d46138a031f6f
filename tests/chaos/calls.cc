#include "calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <sstream>
#include <utility>

namespace fcap::chaos {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Call {
  Checker& checker;
  const Question& question;
  microseconds deadline;
  steady_clock::time_point due = steady_clock::now() + deadline;

  // Odd questions go through an I/O thread, even ones over the caller's own connection where there
  // is one.
  [[nodiscard]] bool odd() const { return (question.number.back() - '0') % 2 != 0; }

  [[nodiscard]] const std::string& word(std::size_t place) const {
    if (place < question.words.size()) return question.words[place];
    std::fprintf(stderr, "question %s (%s) lacks a word\n", question.number.c_str(),
                 question.call.c_str());
    std::exit(2);
  }

  [[nodiscard]] Candidate candidate() const { return {.campaign = word(0)}; }

  [[nodiscard]] std::string line(std::string_view reason) const {
    return question.number + " " + std::to_string(microseconds_since(due)) + " " +
           std::string(reason);
  }
};

std::string in_ms(std::optional<Instant> at) {
  return at ? std::to_string(at->time_since_epoch().count()) : "0";
}

std::vector<Candidate> candidates_from(const Question& question, std::size_t first) {
  if (first >= question.words.size()) return {};
  return {question.words.begin() + static_cast<std::ptrdiff_t>(first), question.words.end()};
}

CheckResult ask(const Call& call, std::span<const Candidate> candidates,
                const CheckOptions& options = {}) {
  if (!call.odd()) return call.checker.check(call.question.user, candidates, options);
  std::promise<CheckResult> result;
  call.checker.check_async(call.question.user, candidates, options,
                           [&](CheckResult found) { result.set_value(std::move(found)); });
  return result.get_future().get();
}

std::string check(const Call& call) {
  const CheckResult result = ask(call, candidates_from(call.question, 0));
  std::string line = call.line(to_string(result.reason));
  for (const Verdict& verdict : result.verdicts) {
    line += verdict.allowed ? " allowed" : " capped";
    if (verdict.stale) line += "-stale";
    if (!verdict.complete) line += "-incomplete";
  }
  return line;
}

std::string hard_line(const Call& call, const HardResult& result) {
  const char* const outcome = result.unknown ? "unknown" : result.allowed ? "allowed" : "refused";
  return call.line(to_string(result.reason)) + " " + outcome + " " + in_ms(result.time) + " " +
         in_ms(result.expires);
}

// Every third reserve() starts from the record that a check has read.
std::string reserve(Call call) {
  const milliseconds life{std::atoi(call.word(2).c_str())};
  HardOptions options;
  if (life.count() > 0) options.life = life;
  CheckToken after;
  if ((call.question.number.back() - '0') % 3 == 0) {
    const Candidate candidate = call.candidate();
    after = ask(call, std::span(&candidate, 1), {.keep_record = true}).token;
    call.due = steady_clock::now() + call.deadline;
  }
  const HardRequest request{HardCall::kReserve,
                            {call.question.user, call.candidate(), call.word(1), {}, after}};
  if (!call.odd()) return hard_line(call, call.checker.hard(request, options));
  std::promise<HardResult> result;
  call.checker.hard_async(request, options,
                          [&](HardResult found) { result.set_value(std::move(found)); });
  return hard_line(call, result.get_future().get());
}

std::string release(const Call& call) {
  return hard_line(call, call.checker.hard({HardCall::kRelease,
                                            {call.question.user, call.candidate(), call.word(1)}}));
}

std::string record(const Call& call) {
  return hard_line(call, call.checker.hard({HardCall::kRecord,
                                            {call.question.user, call.candidate(), call.word(1)}}));
}

// EVENT EVENT CAMPAIGN…: two slots.
std::string page(const Call& call) {
  const std::vector<Candidate> ranked = candidates_from(call.question, 2);
  const std::string_view ids[] = {call.word(0), call.word(1)};
  const PagePicks picks = call.checker.pick({Promise::kReserved, call.question.user, ranked, ids});
  std::string line = call.line(to_string(picks.reason)) + (picks.unknown ? " unknown" : " known");
  for (const PagePicks::Pick& pick : picks.picks) {
    line += " ";
    line += pick.candidate ? std::string(ranked[*pick.candidate].campaign) : "-";
    line += " " + in_ms(pick.time) + " " + in_ms(pick.expires);
  }
  return line;
}

// Checks, and where the candidate passes says that it is shown, to all servers.
std::string note(const Call& call) {
  const Candidate candidate = call.candidate();
  const CheckResult result = ask(call, std::span(&candidate, 1));
  const std::string line = call.line(to_string(result.reason));
  if (result.verdicts.empty() || !result.verdicts[0].allowed) return line + " refused 0 0";
  const auto at = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  const bool noted = call.checker.note_shown(
      {call.question.user, candidate, call.word(1), at, result.token}, Note::kEverywhere);
  return line + (noted ? " allowed " : " refused ") + in_ms(at) + " 0";
}

std::string take_back(const Call& call) {
  const bool taken =
      call.checker.take_back_shown({call.question.user, call.candidate(), call.word(1)});
  return call.line(taken ? "taken_back" : "forgotten") + " refused 0 0";
}

}  // namespace

std::int64_t microseconds_since(steady_clock::time_point due) {
  const auto late = steady_clock::now() - due;
  return std::max<std::int64_t>(0, std::chrono::duration_cast<microseconds>(late).count());
}

Question read_question(const std::string& line) {
  std::istringstream words(line);
  Question question;
  words >> question.number >> question.call >> question.user;
  for (std::string word; words >> word;) question.words.push_back(word);
  return question;
}

std::string answer(Checker& checker, const Question& question, microseconds deadline) {
  const Call call{.checker = checker, .question = question, .deadline = deadline};
  if (question.call == "check") return check(call);
  if (question.call == "reserve") return reserve(call);
  if (question.call == "release") return release(call);
  if (question.call == "record") return record(call);
  if (question.call == "page") return page(call);
  if (question.call == "note") return note(call);
  if (question.call == "take_back") return take_back(call);
  std::fprintf(stderr, "no such call: %s\n", question.call.c_str());
  std::exit(2);
}

}  // namespace fcap::chaos
