#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fcap::segments {

/// Gives each distinct id a number, 0 upwards, and finds it again. Ids lie one behind the other in
/// one buffer; the hash table holds numbers only, and every find compares the whole id.
class IdDictionary {
 public:
  /// The id's number, new or known.
  std::uint32_t add(std::string_view id);
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view id) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return begins_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return text_.capacity() + begins_.capacity() * sizeof(std::uint64_t) +
           slots_.capacity() * sizeof(std::uint32_t);
  }
  /// Gives back what growing has left unused.
  void shrink();

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;

  [[nodiscard]] std::string_view id(std::uint32_t number) const noexcept;
  [[nodiscard]] std::size_t slot_of(std::string_view id) const noexcept;
  void rehash(std::size_t slots);

  std::string text_;
  std::vector<std::uint64_t> begins_;
  std::vector<std::uint32_t> slots_;  // open addressing; a power of two, at most two thirds full
};

}  // namespace fcap::segments
