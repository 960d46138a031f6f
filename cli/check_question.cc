#include "cli/check_question.h"

#include <cmath>
#include <exception>
#include <limits>

#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/instants.h"
#include "ledger/ids.h"

namespace fcap::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;

// The first of the two names that the object has as a string.
const std::string* text_member(const json& object, const char* name, const char* other_name) {
  for (const char* each : {name, other_name}) {
    const auto found = object.find(each);
    if (found != object.end() && found->is_string()) return found->get_ptr<const std::string*>();
  }
  return nullptr;
}

Status check_lengths(const CandidateText& candidate) {
  if (candidate.campaign.empty()) return wrong("a candidate has no campaign");
  if (candidate.campaign.size() > ledger::kIdBytesMax ||
      candidate.creative.size() > ledger::kIdBytesMax) {
    return wrong("a candidate's id has more than 256 bytes");
  }
  return {};
}

Result<CandidateText> candidate_of(const json& element) {
  if (element.is_string()) return parse_candidate(element.get_ref<const std::string&>());
  if (!element.is_object()) return wrong("\"candidates\": must be strings or objects");
  const std::string* campaign = text_member(element, "campaign", "campaign_id");
  const std::string* creative = text_member(element, "creative", "creative_id");
  CandidateText candidate{campaign != nullptr ? *campaign : std::string(),
                          creative != nullptr ? *creative : std::string()};
  if (Status status = check_lengths(candidate); !status.ok()) return status;
  return candidate;
}

// Whole milliseconds; none for what is no number or lies beyond what an instant can hold.
std::optional<std::int64_t> whole_ms(const json& at) {
  if (at.is_number_unsigned()) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto value = at.get<std::uint64_t>();
    return value <= kMax ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
  }
  if (at.is_number_integer()) return at.get<std::int64_t>();
  if (at.is_number_float() && std::abs(at.get<double>()) < 1e15) {
    return static_cast<std::int64_t>(std::floor(at.get<double>()));
  }
  return std::nullopt;
}

Status read_at(const json& object, CheckQuestion& question) {
  const auto at = object.find("at");
  if (at == object.end() || at->is_null()) return {};
  if (at->is_string()) {
    const auto& text = at->get_ref<const std::string&>();
    const Result<Instant> instant = parse_at(text, "\"at\"");
    if (!instant.ok()) return instant.status();
    question.at = instant.value();
    question.warning = seconds_warning(text, "\"at\"");
    return {};
  }
  const std::optional<std::int64_t> ms = whole_ms(*at);
  if (!ms) return wrong("\"at\": must be milliseconds since 1970 or RFC 3339");
  question.at = instant_from_ms(*ms);
  question.warning = seconds_warning(std::to_string(*ms), "\"at\"");
  return {};
}

// A user that is null means that there is no user, which is allowed. A question without the
// member is a mistake.
Status read_user(const json& object, CheckQuestion& question) {
  if (const std::string* user = text_member(object, "user", "user_id")) {
    question.user = *user;
    return {};
  }
  for (const char* name : {"user", "user_id"}) {
    const auto found = object.find(name);
    if (found != object.end()) {
      return found->is_null() ? Status() : wrong("\"" + std::string(name) + "\": is not a string");
    }
  }
  return wrong("\"user\" is missing");
}

Status read_candidates(const json& object, CheckQuestion& question) {
  const auto candidates = object.find("candidates");
  const auto candidate = object.find("candidate");
  if (candidates != object.end()) {
    if (!candidates->is_array()) return wrong("\"candidates\": must be an array");
    for (const json& element : *candidates) {
      Result<CandidateText> one = candidate_of(element);
      if (!one.ok()) return one.status();
      question.candidates.push_back(std::move(one).value());
    }
    return {};
  }
  if (candidate == object.end()) return wrong("\"candidates\" is missing");
  Result<CandidateText> one = candidate_of(*candidate);
  if (!one.ok()) return one.status();
  question.candidates.push_back(std::move(one).value());
  return {};
}

Status read_segments(const json& object, CheckQuestion& question) {
  const auto segments = object.find("segments");
  if (segments == object.end() || segments->is_null()) return {};
  if (!segments->is_array()) return wrong("\"segments\": must be an array of strings");
  for (const json& element : *segments) {
    if (!element.is_string()) return wrong("\"segments\": must be an array of strings");
    question.segments.push_back(element.get<std::string>());
  }
  return {};
}

Result<CheckQuestion> question_of(const json& object, Asks asks) {
  if (!object.is_object()) return wrong("must be a JSON object");
  CheckQuestion question;
  if (Status status = read_user(object, question); !status.ok()) return status;
  if (asks == Asks::kCandidates) {
    if (Status status = read_candidates(object, question); !status.ok()) return status;
  }
  if (Status status = read_segments(object, question); !status.ok()) return status;
  if (Status status = read_at(object, question); !status.ok()) return status;
  if (const auto id = object.find("id"); id != object.end()) question.id_json = id->dump();
  return question;
}

}  // namespace

std::string CandidateText::text() const {
  return creative.empty() ? campaign : campaign + "/" + creative;
}

Result<CandidateText> parse_candidate(std::string_view text) {
  const auto slash = text.find('/');
  CandidateText candidate{std::string(text.substr(0, slash)), std::string()};
  if (slash != std::string_view::npos) candidate.creative = text.substr(slash + 1);
  if (Status status = check_lengths(candidate); !status.ok()) return status;
  return candidate;
}

Result<CheckQuestion> parse_question(std::string_view line, Asks asks) {
  if (line.size() > kLineBytesMax) return wrong("the line has more than 4 MiB");
  try {
    // Depth is the parser's heap, not the stack; destruction of deep values is iterative as well.
    const json object = json::parse(line, nullptr, false);
    if (object.is_discarded()) return wrong("not JSON");
    return question_of(object, asks);
  } catch (const std::exception& failure) {
    return wrong(failure.what());
  }
}

}  // namespace fcap::cli
