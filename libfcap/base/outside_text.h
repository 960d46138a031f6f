#pragma once

#include <string>
#include <string_view>

#include <fcap/log.h>

namespace fcap::base {

// Texts that may quote somebody else: a server, a file, an id. A control character in them could
// move the cursor of a terminal, hide text, or begin a line that nobody has logged.
//
// Thread safety: all functions may be called from any thread.

/// For a terminal: each control character, of Unicode's C1 too, as \xNN. Everything else stays as
/// it is.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() of each line; the line breaks stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// For a log and for health(): as printable(), on one line. A tab becomes a blank, and so does a
/// line break after punctuation, with the blanks around it; any other one becomes "; ". Doing it
/// twice is the same as once.
[[nodiscard]] std::string one_line(std::string_view text);

/// Hands one_line() of each text to `log`; empty if `log` is.
[[nodiscard]] LogCallback one_line_log(LogCallback log);

}  // namespace fcap::base
