#include "cli/simulate/csv_fields.h"

#include <algorithm>

namespace fcap::cli {

void CsvFields::read(std::string_view line) {
  if (line.find('"') != std::string_view::npos) {
    read_quoted(line);
    return;
  }
  fields_.clear();
  for (;;) {
    const std::size_t comma = line.find(separator_);
    fields_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// Fields in double quotes may hold commas; two double quotes in them are one. Fields that span
// several lines are not supported: an unclosed quote is kept as it is.
void CsvFields::read_quoted(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  // Never longer than the line, so the views stay valid.
  unquoted_.reserve(line.size());
  std::size_t begin = 0;
  bool quoted = false;
  const auto end_field = [&] {
    fields_.push_back(std::string_view(unquoted_.data() + begin, unquoted_.size() - begin));
    begin = unquoted_.size();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (!doubled) {
        quoted = !quoted;
        continue;
      }
      ++i;
    } else if (line[i] == separator_ && !quoted) {
      end_field();
      continue;
    }
    unquoted_ += line[i];
  }
  end_field();
}

void CsvFields::read_header(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.find(',') == std::string_view::npos) {
    for (const char other : {';', '\t'}) {
      if (line.find(other) != std::string_view::npos) separator_ = other;
    }
  }
  read(line);
}

std::size_t CsvFields::find(std::initializer_list<std::string_view> texts) const {
  for (const std::string_view text : texts) {
    const auto found = std::find(fields_.begin(), fields_.end(), text);
    if (found != fields_.end()) return static_cast<std::size_t>(found - fields_.begin());
  }
  return kNone;
}

}  // namespace fcap::cli
