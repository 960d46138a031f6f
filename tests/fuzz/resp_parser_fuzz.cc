// Any bytes from a peer, arriving in any pieces, are parsed safely, and the same however they come:
// also those whose strings are passed over.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp_parser.h"

namespace {

using fcap::redis::Reply;
using fcap::redis::RespParser;

// Reads every byte that the reply shows, so that a view outside of the input is caught.
std::size_t checksum(const Reply& reply) {
  std::size_t sum = static_cast<std::size_t>(reply.kind) + static_cast<std::size_t>(reply.integer);
  for (const char c : reply.text) sum = sum * 31 + static_cast<unsigned char>(c);
  for (const Reply& element : reply.elements) sum = sum * 37 + checksum(element);
  return sum;
}

// As Connection does it: what the parser says is of no use is taken out as it comes.
std::vector<std::size_t> parse_in_pieces(std::string_view bytes, std::size_t piece,
                                         std::size_t string_bytes_max) {
  std::vector<std::size_t> seen;
  RespParser parser(string_bytes_max);
  std::string held;
  std::size_t end = 0;
  for (;;) {
    // Memory of exactly this size, so that reading past it is caught.
    const auto copy = std::make_unique<char[]>(held.size());
    held.copy(copy.get(), held.size());
    switch (parser.parse({copy.get(), held.size()})) {
      case RespParser::ParseOutcome::kReply:
        seen.push_back(checksum(parser.reply()));
        if (parser.length_bytes() == 0 || parser.length_bytes() > held.size()) std::abort();
        held.erase(0, parser.length_bytes());
        break;
      case RespParser::ParseOutcome::kMalformed:
        return seen;
      case RespParser::ParseOutcome::kNeedMore: {
        if (parser.skip_left() != 0) {
          if (parser.skip_at() > held.size()) std::abort();
          const std::size_t skipped = std::min(parser.skip_left(), held.size() - parser.skip_at());
          held.erase(parser.skip_at(), skipped);
          parser.skipped(skipped);
          if (skipped != 0) break;
        }
        if (end == bytes.size()) return seen;
        const std::size_t next = std::min(bytes.size(), end + piece);
        held.append(bytes.substr(end, next - end));
        end = next;
        break;
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} % 31 + 1;
  // Also with a bound so small that the inputs there are have longer strings.
  for (const std::size_t string_bytes_max : {std::size_t{1} << 20U, std::size_t{4}}) {
    if (parse_in_pieces(bytes, piece, string_bytes_max) !=
        parse_in_pieces(bytes, bytes.size(), string_bytes_max)) {
      std::abort();
    }
  }
  return 0;
}
