#include "redis/resp_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace fcap::redis {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// How much of an error may be shown to anybody. A command that Redis does not know it quotes with
// its first arguments, of which one is a key, and so the id of a user.
std::size_t shown_bytes(std::string_view error) noexcept {
  return std::min(error.find(", with args beginning with"), error.size());
}

std::string_view text_of(std::string_view bytes, std::size_t begin, std::size_t length) noexcept {
  return {bytes.data() + begin, length};
}

}  // namespace

RespParser::ParseOutcome RespParser::parse(std::string_view bytes) {
  for (;;) {
    ParsedElement node;
    const ParseOutcome outcome = parse_node(bytes, node);
    if (outcome != ParseOutcome::kReply) return outcome;
    if (open_.empty() && node.kind != Reply::Kind::kArray) {
      finish(bytes, node);
      return ParseOutcome::kReply;
    }
    if (nodes_.size() >= kElementsMax || position_ > kReplyBytesMax)
      return ParseOutcome::kMalformed;
    nodes_.push_back(node);
    if (!open_.empty()) --open_.back();
    if (node.kind == Reply::Kind::kArray && node.integer > 0) {
      if (open_.size() >= kDepthMax) return ParseOutcome::kMalformed;
      open_.push_back(static_cast<std::size_t>(node.integer));
    }
    while (!open_.empty() && open_.back() == 0) open_.pop_back();
    if (open_.empty()) {
      finish(bytes, node);
      return ParseOutcome::kReply;
    }
  }
}

// One element at position_: a whole string, number or nil, or the head of an array. position_ moves
// on only when it is complete.
RespParser::ParseOutcome RespParser::parse_node(std::string_view bytes, ParsedElement& node) {
  if (bytes.size() <= position_) return ParseOutcome::kNeedMore;
  const char type = bytes[position_];
  if (std::strchr("$:*+-", type) == nullptr || type == '\0') return ParseOutcome::kMalformed;
  const std::string_view rest = bytes.substr(position_ + 1);
  const auto* const end =
      rest.empty() ? nullptr
                   : static_cast<const char*>(std::memchr(rest.data(), '\r', rest.size()));
  const auto line_bytes =
      end == nullptr ? rest.size() : static_cast<std::size_t>(end - rest.data());
  if (line_bytes > kLineBytesMax) return ParseOutcome::kMalformed;
  if (end == nullptr || line_bytes + 1 == rest.size()) return ParseOutcome::kNeedMore;
  if (end[1] != '\n') return ParseOutcome::kMalformed;
  const std::string_view line = rest.substr(0, line_bytes);
  const std::size_t line_end = position_ + 1 + line_bytes + 2;

  if (type == '$') return parse_string(bytes, line, node);
  if (type == '*') return parse_array(line, line_end, node);
  if (type == ':') {
    const auto value = parse_integer(line);
    if (!value) return ParseOutcome::kMalformed;
    node.kind = Reply::Kind::kInteger;
    node.integer = *value;
  } else {
    node.kind = type == '+' ? Reply::Kind::kStatus : Reply::Kind::kError;
    node.text_begin = position_ + 1;
    node.text_bytes = node.kind == Reply::Kind::kError ? shown_bytes(line) : line_bytes;
  }
  position_ = line_end;
  return ParseOutcome::kReply;
}

RespParser::ParseOutcome RespParser::parse_string(std::string_view bytes, std::string_view line,
                                                  ParsedElement& node) {
  const auto length = parse_integer(line);
  if (!length || *length < -1 || *length > static_cast<std::int64_t>(kSkippedBytesMax)) {
    return ParseOutcome::kMalformed;
  }
  const std::size_t text_begin = position_ + 1 + line.size() + 2;
  if (*length == -1) {
    node.kind = Reply::Kind::kNil;
    position_ = text_begin;
    return ParseOutcome::kReply;
  }
  const auto text_bytes = static_cast<std::size_t>(*length);
  // Strings with which an array would become too large are skipped.
  if (text_bytes > string_bytes_max_ || position_ + text_bytes > kReplyBytesMax) {
    return skip_string(bytes, text_begin, text_bytes, node);
  }
  if (bytes.size() - text_begin < text_bytes + 2) return ParseOutcome::kNeedMore;
  if (bytes[text_begin + text_bytes] != '\r' || bytes[text_begin + text_bytes + 1] != '\n') {
    return ParseOutcome::kMalformed;
  }
  node.kind = Reply::Kind::kString;
  node.text_begin = text_begin;
  node.text_bytes = text_bytes;
  position_ = text_begin + text_bytes + 2;
  return ParseOutcome::kReply;
}

// The caller removes the text, so that its end follows its head.
RespParser::ParseOutcome RespParser::skip_string(std::string_view bytes, std::size_t text_begin,
                                                 std::size_t text_bytes, ParsedElement& node) {
  if (!skipping_) {
    skipping_ = true;
    skip_at_ = text_begin;
    skip_left_ = text_bytes;
  }
  if (skip_left_ != 0 || bytes.size() < text_begin + 2) return ParseOutcome::kNeedMore;
  if (bytes[text_begin] != '\r' || bytes[text_begin + 1] != '\n') return ParseOutcome::kMalformed;
  skipping_ = false;
  node.kind = Reply::Kind::kOversized;
  node.integer = static_cast<std::int64_t>(text_bytes);
  position_ = text_begin + 2;
  return ParseOutcome::kReply;
}

RespParser::ParseOutcome RespParser::parse_array(std::string_view line, std::size_t line_end,
                                                 ParsedElement& node) {
  const auto count = parse_integer(line);
  if (!count || *count < -1 || *count > static_cast<std::int64_t>(kElementsMax)) {
    return ParseOutcome::kMalformed;
  }
  node.kind = *count == -1 ? Reply::Kind::kNil : Reply::Kind::kArray;
  node.integer = *count == -1 ? 0 : *count;
  position_ = line_end;
  return ParseOutcome::kReply;
}

void RespParser::finish(std::string_view bytes, const ParsedElement& only) {
  if (nodes_.empty()) {
    reply_ = {only.kind, only.integer, text_of(bytes, only.text_begin, only.text_bytes), {}};
  } else {
    replies_.resize(nodes_.size());
    replies_used_ = 0;
    build(bytes, 0, reply_);
    nodes_.clear();
  }
  length_bytes_ = position_;
  position_ = 0;
}

// Fills `out` from the node and those below it, siblings side by side; returns the node after them.
// Depth is bounded by kDepthMax.
std::size_t RespParser::build(std::string_view bytes, std::size_t node, Reply& out) {
  const ParsedElement& from = nodes_[node];
  const bool is_array = from.kind == Reply::Kind::kArray;
  out = {
      from.kind, is_array ? 0 : from.integer, text_of(bytes, from.text_begin, from.text_bytes), {}};
  ++node;
  if (!is_array) return node;
  Reply* const children = replies_.data() + replies_used_;
  const auto count = static_cast<std::size_t>(from.integer);
  replies_used_ += count;
  for (std::size_t i = 0; i < count; ++i) node = build(bytes, node, children[i]);
  out.elements = {children, count};
  return node;
}

}  // namespace fcap::redis
