#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "redis/reply.h"

namespace fcap::redis {

/// Finds replies (RESP2) in received bytes. Free of I/O; copies nothing, and allocates only for
/// arrays, into memory that it keeps. A partial reply is resumed where parsing stopped, and no
/// length that the peer claims is believed before its bytes are there.
///
/// We do this rather than use hiredis' reader, which keeps what it receives of a string however
/// long it is, and hands out objects that it has allocated and copied each string into. It is the
/// oracle in the tests.
class RespParser {
 public:
  /// A string is skipped, and returned as kOversized without its text, if it is longer than
  /// `string_bytes_max` or if an array would exceed kReplyBytesMax with it: one such key must not
  /// affect other requests on the connection.
  explicit RespParser(std::size_t string_bytes_max = std::size_t{1} << 20U)
      : string_bytes_max_(string_bytes_max) {}

  enum class ParseOutcome : std::uint8_t { kReply, kNeedMore, kMalformed };

  /// Bounds on how much a peer can make us keep in memory.
  static constexpr std::size_t kReplyBytesMax = std::size_t{64} << 20U;
  static constexpr std::size_t kSkippedBytesMax = std::size_t{1} << 30U;
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 10U;
  static constexpr std::size_t kElementsMax = std::size_t{1} << 20U;
  static constexpr std::size_t kDepthMax = 8;

  /// `bytes` are all that was received from the first byte of the reply that is due; after
  /// kNeedMore the same ones (possibly moved elsewhere) and more. After kReply the next call is
  /// about the next reply. After kMalformed the stream is lost.
  [[nodiscard]] ParseOutcome parse(std::string_view bytes);

  /// After kNeedMore: how many bytes from skip_at() on (of that call and later ones) are not
  /// needed. The caller removes them as they arrive, before it passes the bytes again, and reports
  /// it.
  [[nodiscard]] std::size_t skip_left() const noexcept { return skip_left_; }
  [[nodiscard]] std::size_t skip_at() const noexcept { return skip_at_; }
  void skipped(std::size_t bytes) noexcept { skip_left_ -= bytes; }

  /// After kReply: the reply, with views into the bytes of that call, valid until the next one.
  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }
  /// After kReply: how many bytes it was.
  [[nodiscard]] std::size_t length_bytes() const noexcept { return length_bytes_; }

 private:
  // An element in the order of arrival; its text as an offset, since the bytes may move.
  struct ParsedElement {
    Reply::Kind kind = Reply::Kind::kNil;
    std::int64_t integer = 0;  // of an array: its size
    std::size_t text_begin = 0;
    std::size_t text_bytes = 0;
  };

  ParseOutcome parse_node(std::string_view bytes, ParsedElement& node);
  ParseOutcome parse_string(std::string_view bytes, std::string_view line, ParsedElement& node);
  ParseOutcome skip_string(std::string_view bytes, std::size_t text_begin, std::size_t text_bytes,
                           ParsedElement& node);
  ParseOutcome parse_array(std::string_view line, std::size_t line_end, ParsedElement& node);
  void finish(std::string_view bytes, const ParsedElement& only);
  std::size_t build(std::string_view bytes, std::size_t node, Reply& out);

  std::size_t string_bytes_max_;
  std::size_t position_ = 0;          // of the next element, from the reply's first byte
  std::vector<ParsedElement> nodes_;  // empty for a reply that is no array
  std::vector<std::size_t> open_;     // for each unfinished array: elements still to come
  std::vector<Reply> replies_;        // what reply_.elements points to
  std::size_t replies_used_ = 0;
  Reply reply_;
  std::size_t length_bytes_ = 0;
  bool skipping_ = false;
  std::size_t skip_at_ = 0;
  std::size_t skip_left_ = 0;
};

}  // namespace fcap::redis
