#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fcap::redis {

/// The pieces of a command in RESP, for commands of any length: the count, then each word.
void append_word_count(std::string& wire, std::size_t words);
void append_word(std::string& wire, std::string_view word);

}  // namespace fcap::redis
