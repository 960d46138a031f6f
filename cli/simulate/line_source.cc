#include "cli/simulate/line_source.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <zlib.h>

namespace fcap::cli {

LineSource::LineSource(std::string path, gzFile_s* file, std::uint64_t bytes_total)
    : path_(std::move(path)),
      file_(file),
      bytes_total_(bytes_total),
      block_(std::size_t{4} * kLineBytesMax) {}

LineSource::~LineSource() {
  gzclose(file_);
}

Result<std::unique_ptr<LineSource>> LineSource::open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return Status::error(StatusCode::kNotFound, "--log: " + path + " is a directory");
  }
  gzFile_s* const file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return Status::error(StatusCode::kNotFound, "--log: " + path + " cannot be opened: " +
                                                    std::generic_category().message(errno));
  }
  gzbuffer(file, 1U << 18);
  const auto size = std::filesystem::file_size(path, error);
  return std::unique_ptr<LineSource>(new LineSource(path, file, error ? 0 : size));
}

// Moves what is left of the block to its front and reads behind it.
bool LineSource::fill() {
  if (at_end_) return false;
  std::memmove(block_.data(), block_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const int got = gzread(file_, block_.data() + end_, static_cast<unsigned>(block_.size() - end_));
  int code = Z_OK;
  const char* const text = gzerror(file_, &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    status_ = Status::error(StatusCode::kCorrupt,
                            "--log: " + path_ + " cannot be read to its end: " + text);
  }
  if (got <= 0 || !status_.ok()) {
    at_end_ = true;
    return false;
  }
  end_ += static_cast<std::size_t>(got);
  return true;
}

bool LineSource::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const begin = block_.data() + begin_;
    const std::size_t held = end_ - begin_;
    const void* const found =
        held > searched ? std::memchr(begin + searched, '\n', held - searched) : nullptr;
    if (found != nullptr) {
      line = {begin, static_cast<std::size_t>(static_cast<const char*>(found) - begin)};
      begin_ += line.size() + 1;
      break;
    }
    searched = held;
    if (held < kLineBytesMax && fill()) continue;
    if (!status_.ok() || held == 0) return false;
    line = {block_.data() + begin_, end_ - begin_};
    begin_ = end_;
    break;
  }
  ++line_number_;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

char LineSource::peek() {
  for (std::size_t at = begin_;; ++at) {
    if (at == end_) {
      at -= begin_;
      if (at >= kLineBytesMax || !fill()) return 0;
      at += begin_;
    }
    const char byte = block_[at];
    // A byte order mark, as spreadsheets write it, is no content.
    if (std::strchr(" \t\r\n\xEF\xBB\xBF", byte) == nullptr) return byte;
  }
}

std::uint64_t LineSource::bytes_read() const noexcept {
  const auto offset = gzoffset(file_);
  return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
}

}  // namespace fcap::cli
