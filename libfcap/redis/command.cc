#include "redis/command.h"

#include <charconv>

#include "redis/client.h"

namespace fcap::redis {
namespace {

void append_header(std::string& wire, char type, std::size_t count) {
  char text[24];
  text[0] = type;
  const auto end = std::to_chars(text + 1, text + sizeof(text) - 2, count).ptr;
  end[0] = '\r';
  end[1] = '\n';
  wire.append(text, static_cast<std::size_t>(end + 2 - text));
}

}  // namespace

void append_word_count(std::string& wire, std::size_t words) {
  append_header(wire, '*', words);
}

void append_word(std::string& wire, std::string_view word) {
  append_header(wire, '$', word.size());
  wire.append(word);
  wire.append("\r\n", 2);
}

void append_command(std::string& wire, std::initializer_list<std::string_view> words) {
  append_word_count(wire, words.size());
  for (const std::string_view word : words) append_word(wire, word);
}

}  // namespace fcap::redis
