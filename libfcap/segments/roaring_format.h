#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/status.h>

namespace fcap::segments {

/// Reads a portable 64-bit roaring serialisation (CRoaring's Roaring64Map, Java's
/// Roaring64NavigableMap in portable mode, Go's roaring64) bitmap by bitmap, and lets through
/// nothing that CRoaring could not hold. CRoaring's own readers (as of the distribution's 0.2.66)
/// are bounds-checked but do not validate the contents, and these bytes come from outside.
///
///     Roaring64Reader reader(bytes);
///     while (const auto bucket = reader.next()) use(Roaring::readSafe(bucket->bytes…));
///     if (!reader.status().ok()) return reader.status();
class Roaring64Reader {
 public:
  /// The numbers that share their upper 32 bits, as a portable 32-bit bitmap, whole and in order.
  struct Bucket {
    std::uint32_t high = 0;
    std::string_view bytes;
    std::uint64_t members = 0;
    std::uint32_t containers = 0;  ///< stretches of 65,536 numbers that have members
  };

  /// The bytes must outlive the reader.
  explicit Roaring64Reader(std::string_view bytes) : bytes_(bytes) {}

  /// None: at the end, or where bytes are wrong; status() says which.
  std::optional<Bucket> next();
  /// kCorrupt: where and what is wrong.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  template <typename T>
  [[nodiscard]] bool read(T& value);
  [[nodiscard]] bool skip(std::size_t bytes);
  bool wrong(const char* what);
  bool begin();
  bool read_bitmap(Bucket& bucket);
  bool read_array(std::uint32_t members);
  bool read_bitset(std::uint32_t members);
  bool read_runs(std::uint32_t members);

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool begun_ = false;
  std::uint64_t buckets_left_ = 0;
  std::optional<std::uint32_t> last_high_;
  Status status_;
};

}  // namespace fcap::segments
