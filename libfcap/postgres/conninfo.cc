#include "postgres/conninfo.h"

#include <memory>

#include <libpq-fe.h>

namespace fcap::postgres {
namespace {

using Parsed = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

Parsed parsed(const std::string& conninfo, char** error = nullptr) {
  return {PQconninfoParse(conninfo.c_str(), error), PQconninfoFree};
}

void append_option(std::string& conninfo, std::string_view keyword, std::string_view value) {
  if (!conninfo.empty()) conninfo += ' ';
  conninfo.append(keyword).append("='");
  for (const char c : value) {
    if (c == '\'' || c == '\\') conninfo += '\\';
    conninfo += c;
  }
  conninfo += '\'';
}

}  // namespace

Status check_conninfo(const std::string& conninfo) {
  // libpq's own text is not shown: it quotes what it cannot read, which may be part of a password.
  if (parsed(conninfo) != nullptr) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "rules.postgres is not a libpq connection string");
}

Status explain_conninfo(const std::string& conninfo) {
  char* error = nullptr;
  if (parsed(conninfo, &error) != nullptr) return {};
  std::string text = error == nullptr ? "not a connection string" : error;
  PQfreemem(error);
  while (text.ends_with('\n')) text.pop_back();
  return Status::error(StatusCode::kInvalidArgument, text);
}

bool has_password(const std::string& conninfo) {
  const Parsed options = parsed(conninfo);
  if (options == nullptr) return false;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (std::string_view(option->keyword) == "password" && option->val != nullptr) return true;
  }
  return false;
}

std::string with_password(const std::string& conninfo, std::string_view password) {
  // Rebuilt from its parts, since it may be a URI, to which nothing can be appended.
  const Parsed options = parsed(conninfo);
  if (options == nullptr) return conninfo;
  std::string rebuilt;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view keyword = option->keyword;
    if (option->val != nullptr && keyword != "password") {
      append_option(rebuilt, keyword, option->val);
    }
  }
  append_option(rebuilt, "password", password);
  return rebuilt;
}

std::string masked(const std::string& conninfo) {
  const Parsed options = parsed(conninfo);
  if (options == nullptr) return {};
  bool holds_secret = false;
  std::string rebuilt;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    // libpq marks with a star what must not be shown.
    const std::string_view shown = option->dispchar == nullptr ? "" : option->dispchar;
    const bool secret = keyword.ends_with("password") || shown == "*";
    holds_secret |= secret;
    append_option(rebuilt, keyword, secret ? "(set)" : option->val);
  }
  return holds_secret ? rebuilt : conninfo;
}

}  // namespace fcap::postgres
