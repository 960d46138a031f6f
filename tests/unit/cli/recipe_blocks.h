#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "test_paths.h"

namespace fcap::testing {

/// A fenced block of docs/recipes.md.
struct RecipeBlock {
  std::string section;  ///< the heading above it
  std::string kind;     ///< what follows the opening fence: "sql", "json rules"…
  std::string text;
  std::size_t line = 0;  ///< of its first line

  [[nodiscard]] std::string place() const {
    return "docs/recipes.md:" + std::to_string(line) + " (" + section + ")";
  }
};

/// All blocks of the page, in their order.
inline std::vector<RecipeBlock> recipe_blocks() {
  std::ifstream file(FCAP_SOURCE_DIR "/docs/recipes.md");
  std::vector<RecipeBlock> blocks;
  std::string section;
  std::string line;
  bool inside = false;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().text += line + "\n";
    } else if (line.starts_with("```")) {
      inside = true;
      blocks.push_back({section, line.substr(3), {}, number + 1});
    } else if (line.starts_with("## ")) {
      section = line.substr(3);
    }
  }
  return blocks;
}

}  // namespace fcap::testing
