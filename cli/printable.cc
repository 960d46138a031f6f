#include "cli/printable.h"

#include <fmt/format.h>

namespace fcap::cli {

std::string printable(std::string_view id) {
  std::string text;
  text.reserve(id.size());
  for (std::size_t i = 0; i < id.size(); ++i) {
    const auto byte = static_cast<unsigned char>(id[i]);
    // U+0080 to U+009F are control characters too: two bytes in UTF-8.
    const bool is_c1 = byte == 0xC2 && i + 1 < id.size() &&
                       static_cast<unsigned char>(id[i + 1]) >= 0x80 &&
                       static_cast<unsigned char>(id[i + 1]) < 0xA0;
    if (byte >= 0x20 && byte != 0x7F && !is_c1) {
      text += id[i];
      continue;
    }
    text += fmt::format("\\x{:02x}", byte);
    if (is_c1) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(id[++i]));
  }
  return text;
}

}  // namespace fcap::cli
