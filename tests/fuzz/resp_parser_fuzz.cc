// Any bytes from a peer, arriving in any pieces, are parsed safely, and the same however they come.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
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

std::vector<std::size_t> parse_in_pieces(std::string_view bytes, std::size_t piece) {
  std::vector<std::size_t> seen;
  RespParser parser;
  std::size_t begin = 0;
  std::size_t end = 0;
  for (;;) {
    // Memory of exactly this size, so that reading past it is caught.
    const std::size_t size = end - begin;
    const auto copy = std::make_unique<char[]>(size);
    bytes.copy(copy.get(), size, begin);
    switch (parser.parse({copy.get(), size})) {
      case RespParser::Outcome::kReply:
        seen.push_back(checksum(parser.reply()));
        if (parser.length_bytes() == 0 || parser.length_bytes() > size) std::abort();
        begin += parser.length_bytes();
        break;
      case RespParser::Outcome::kMalformed:
        return seen;
      case RespParser::Outcome::kNeedMore:
        if (end == bytes.size()) return seen;
        end = std::min(bytes.size(), end + piece);
        break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} % 31 + 1;
  if (parse_in_pieces(bytes, piece) != parse_in_pieces(bytes, bytes.size())) std::abort();
  return 0;
}
