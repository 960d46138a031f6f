// docs/recipes.md is true: the rules, events and questions of each recipe, as they stand on the
// page, give the answers that stand below them.
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "command.h"
#include "recipe_blocks.h"

namespace fcap::cli_test {
namespace recipes_test {

using nlohmann::json;
using testing::RecipeBlock;

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

// Whether `actual` says everything that `expected` says; objects may say more.
bool says(const json& actual, const json& expected) {
  if (expected.is_object()) {
    if (!actual.is_object()) return false;
    for (const auto& [name, value] : expected.items()) {
      if (!actual.contains(name) || !says(actual[name], value)) return false;
    }
    return true;
  }
  if (expected.is_array()) {
    if (!actual.is_array() || actual.size() != expected.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!says(actual[i], expected[i])) return false;
    }
    return true;
  }
  return actual == expected;
}

// What a recipe has said so far: an answers block is about the latest of each.
struct Recipe {
  std::string rules;
  std::string events;
  std::string questions;
};

void expect_answers(const Recipe& recipe, const RecipeBlock& answers) {
  const File rules(recipe.rules);
  const File events(recipe.events);
  const Ran ran =
      run({"check", "--rules", rules.path(), "--events", events.path()}, recipe.questions);
  EXPECT_EQ(ran.code, 0) << answers.place() << ": " << ran.err;
  EXPECT_EQ(ran.err, "") << answers.place();
  const std::vector<json> actual = json_lines(ran.out);
  const std::vector<json> expected = json_lines(answers.text);
  ASSERT_EQ(actual.size(), expected.size()) << answers.place();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(says(actual[i], expected[i]))
        << "docs/recipes.md:" << answers.line + i << " says\n  " << expected[i] << "\nfcap says\n  "
        << actual[i];
  }
}

TEST(Recipes, EachGivesTheAnswersOfThePage) {
  Recipe recipe;
  std::string section;
  std::set<std::string> answered;
  for (const RecipeBlock& block : testing::recipe_blocks()) {
    if (block.section != section) recipe = {};
    section = block.section;
    if (block.kind == "json rules") {
      recipe.rules = block.text;
      const File file(block.text);
      const Ran ran = run({"rules", "--check", "--rules", file.path()});
      EXPECT_EQ(ran.code, 0) << block.place() << ": " << ran.out << ran.err;
    } else if (block.kind == "json events") {
      recipe.events = block.text;
    } else if (block.kind == "json questions") {
      recipe.questions = block.text;
    } else if (block.kind == "json answers") {
      expect_answers(recipe, block);
      answered.insert(block.section);
    } else {
      EXPECT_TRUE(block.kind == "sql" || block.kind == "cpp") << block.place();
    }
  }
  EXPECT_EQ(answered.size(), 8U);
}

TEST(Recipes, WhatTheReaderSeesOfAnEventIsItsTimestamp) {
  std::size_t events = 0;
  for (const RecipeBlock& block : testing::recipe_blocks()) {
    if (block.kind != "json events") continue;
    std::set<std::string> ids;
    for (const json& event : json_lines(block.text)) {
      const auto when = base::parse_instant(event["when"].get<std::string>());
      ASSERT_TRUE(when) << event;
      EXPECT_EQ(to_ms(*when), event["timestamp"].get<std::int64_t>() * 1000) << event;
      EXPECT_TRUE(ids.insert(event["imp_id"]).second) << block.place() << " " << event;
      ++events;
    }
  }
  EXPECT_GT(events, 0U);
}

}  // namespace recipes_test
}  // namespace fcap::cli_test
