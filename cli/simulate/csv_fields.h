#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fcap::cli {

/// The fields of one line of CSV at a time. Fields may be in double quotes, and are separated by
/// commas, or by semicolons or tabs where the header line has no comma.
class CsvFields {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Reads the first line, which tells the separator and may begin with a byte order mark.
  void read_header(std::string_view line);
  /// Reads a further line. Its fields are valid until the next one, as long as `line` is.
  void read(std::string_view line);

  [[nodiscard]] std::size_t count() const noexcept { return fields_.size(); }
  /// Empty for kNone.
  [[nodiscard]] std::string_view at(std::size_t field) const noexcept {
    return field == kNone ? std::string_view() : fields_[field];
  }
  /// Where the first of these texts is that is there; kNone: none of them is.
  [[nodiscard]] std::size_t find(std::initializer_list<std::string_view> texts) const;

 private:
  void read_quoted(std::string_view line);

  char separator_ = ',';
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

}  // namespace fcap::cli
