#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

struct gzFile_s;

namespace fcap::cli {

/// The lines of a file, gzip or plain, without their line ends. Holds one block at a time.
class LineSource {
 public:
  /// A longer line is handed over cut off; nothing that we read has such lines.
  static constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;

  static Result<std::unique_ptr<LineSource>> open(const std::string& path);
  ~LineSource();
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;

  /// False at the end, or where the file cannot be read any further: then status() says. The view
  /// is valid until the next call.
  bool next(std::string_view& line);

  /// The first byte that is not white space, without taking it; 0 in an empty file.
  [[nodiscard]] char peek();

  /// The number of the line that next() gave last; from 1.
  [[nodiscard]] std::size_t line_number() const noexcept { return line_number_; }
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  /// How much of the file, as it lies on disk, has been read.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept;
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  LineSource(std::string path, gzFile_s* file, std::uint64_t bytes_total);
  bool fill();

  std::string path_;
  gzFile_s* file_;
  std::uint64_t bytes_total_;
  std::vector<char> block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool at_end_ = false;
  std::size_t line_number_ = 0;
  Status status_;
};

}  // namespace fcap::cli
