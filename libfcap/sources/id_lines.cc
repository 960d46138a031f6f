#include "sources/id_lines.h"

#include "ledger/ids.h"

namespace fcap::sources {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// How long a line may be that still holds an id: the id, the mark before it and "\r" behind it.
constexpr std::size_t kLineBytesMax = kByteOrderMark.size() + ledger::kIdBytesMax + 1;

}  // namespace

Status IdLines::read(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      held_ += piece;
      // Refused here, so that a file without an end of line does not fill the memory.
      return held_.size() > kLineBytesMax ? finish() : Status{};
    }
    std::string_view line = piece.substr(0, end);
    if (!held_.empty()) line = held_ += line;
    if (Status status = add(line); !status.ok()) return status;
    held_.clear();
    piece.remove_prefix(end + 1);
  }
  return {};
}

Status IdLines::finish() {
  return held_.empty() ? Status{} : add(held_);
}

Status IdLines::add(std::string_view line) {
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) return {};
  const Status status = builder_.add(segment_, line);
  if (status.ok()) return {};
  return Status::error(StatusCode::kCorrupt,
                       "line " + std::to_string(line_) + ": " + status.text());
}

}  // namespace fcap::sources
