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

RespParser::Outcome RespParser::parse(std::string_view bytes) {
  for (;;) {
    Node node;
    const Outcome outcome = parse_node(bytes, node);
    if (outcome != Outcome::kReply) return outcome;
    if (open_.empty() && node.kind != Reply::Kind::kArray) {
      finish(bytes, node);
      return Outcome::kReply;
    }
    if (nodes_.size() >= kElementsMax || position_ > kReplyBytesMax) return Outcome::kMalformed;
    nodes_.push_back(node);
    if (!open_.empty()) --open_.back();
    if (node.kind == Reply::Kind::kArray && node.integer > 0) {
      if (open_.size() >= kDepthMax) return Outcome::kMalformed;
      open_.push_back(static_cast<std::size_t>(node.integer));
    }
    while (!open_.empty() && open_.back() == 0) open_.pop_back();
    if (open_.empty()) {
      finish(bytes, node);
      return Outcome::kReply;
    }
  }
}

// One element at position_: a whole string, number or nil, or the head of an array. position_ moves
// on only when it is complete.
RespParser::Outcome RespParser::parse_node(std::string_view bytes, Node& node) {
  if (bytes.size() <= position_) return Outcome::kNeedMore;
  const char type = bytes[position_];
  if (std::strchr("$:*+-", type) == nullptr || type == '\0') return Outcome::kMalformed;
  const std::string_view rest = bytes.substr(position_ + 1);
  const auto* const end =
      rest.empty() ? nullptr
                   : static_cast<const char*>(std::memchr(rest.data(), '\r', rest.size()));
  const auto line_bytes =
      end == nullptr ? rest.size() : static_cast<std::size_t>(end - rest.data());
  if (line_bytes > kLineBytesMax) return Outcome::kMalformed;
  if (end == nullptr || line_bytes + 1 == rest.size()) return Outcome::kNeedMore;
  if (end[1] != '\n') return Outcome::kMalformed;
  const std::string_view line = rest.substr(0, line_bytes);
  const std::size_t line_end = position_ + 1 + line_bytes + 2;

  if (type == '$') return parse_string(bytes, line, node);
  if (type == '*') return parse_array(line, line_end, node);
  if (type == ':') {
    const auto value = parse_integer(line);
    if (!value) return Outcome::kMalformed;
    node.kind = Reply::Kind::kInteger;
    node.integer = *value;
  } else {
    node.kind = type == '+' ? Reply::Kind::kStatus : Reply::Kind::kError;
    node.text_begin = position_ + 1;
    node.text_bytes = node.kind == Reply::Kind::kError ? shown_bytes(line) : line_bytes;
  }
  position_ = line_end;
  return Outcome::kReply;
}

RespParser::Outcome RespParser::parse_string(std::string_view bytes, std::string_view line,
                                             Node& node) {
  const auto length = parse_integer(line);
  if (!length || *length < -1 || *length > static_cast<std::int64_t>(kSkippedBytesMax)) {
    return Outcome::kMalformed;
  }
  const std::size_t text_begin = position_ + 1 + line.size() + 2;
  if (*length == -1) {
    node.kind = Reply::Kind::kNil;
    position_ = text_begin;
    return Outcome::kReply;
  }
  const auto text_bytes = static_cast<std::size_t>(*length);
  // Strings with which an array would become too large are skipped.
  if (text_bytes > string_bytes_max_ || position_ + text_bytes > kReplyBytesMax) {
    return skip_string(bytes, text_begin, text_bytes, node);
  }
  if (bytes.size() - text_begin < text_bytes + 2) return Outcome::kNeedMore;
  if (bytes[text_begin + text_bytes] != '\r' || bytes[text_begin + text_bytes + 1] != '\n') {
    return Outcome::kMalformed;
  }
  node.kind = Reply::Kind::kString;
  node.text_begin = text_begin;
  node.text_bytes = text_bytes;
  position_ = text_begin + text_bytes + 2;
  return Outcome::kReply;
}

// The caller removes the text, so that its end follows its head.
RespParser::Outcome RespParser::skip_string(std::string_view bytes, std::size_t text_begin,
                                            std::size_t text_bytes, Node& node) {
  if (!skipping_) {
    skipping_ = true;
    skip_at_ = text_begin;
    skip_left_ = text_bytes;
  }
  if (skip_left_ != 0 || bytes.size() < text_begin + 2) return Outcome::kNeedMore;
  if (bytes[text_begin] != '\r' || bytes[text_begin + 1] != '\n') return Outcome::kMalformed;
  skipping_ = false;
  node.kind = Reply::Kind::kOversized;
  node.integer = static_cast<std::int64_t>(text_bytes);
  position_ = text_begin + 2;
  return Outcome::kReply;
}

RespParser::Outcome RespParser::parse_array(std::string_view line, std::size_t line_end,
                                            Node& node) {
  const auto count = parse_integer(line);
  if (!count || *count < -1 || *count > static_cast<std::int64_t>(kElementsMax)) {
    return Outcome::kMalformed;
  }
  node.kind = *count == -1 ? Reply::Kind::kNil : Reply::Kind::kArray;
  node.integer = *count == -1 ? 0 : *count;
  position_ = line_end;
  return Outcome::kReply;
}

void RespParser::finish(std::string_view bytes, const Node& only) {
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
  const Node& from = nodes_[node];
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
