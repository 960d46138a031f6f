#include "command_line/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace fcap::command_line {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kNameBytesMax = 100;
  if (name.size() > kNameBytesMax) return {};
  std::string nearest;
  // A name of which nothing is left has nothing in common.
  std::size_t distance = std::min(std::max<std::size_t>(name.size() / 3, 2) + 1, name.size());
  for (const std::string& candidate : known) {
    const std::size_t candidate_distance = edit_distance(name, candidate);
    if (candidate_distance < distance) {
      distance = candidate_distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace fcap::command_line
