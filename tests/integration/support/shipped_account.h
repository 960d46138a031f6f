#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "test_paths.h"

namespace fcap::testing {

/// The rules of an account in redis/acl, without its name and state: what "ACL SETUSER" takes.
inline std::vector<std::string> shipped_rights(const std::string& role) {
  std::ifstream file(std::string(FCAP_SOURCE_DIR) + "/redis/acl/" + role + ".acl");
  std::string user;
  std::string name;
  std::string state;
  if (!(file >> user >> name >> state) || user != "user" || state != "off") {
    throw std::runtime_error("redis/acl/" + role + ".acl is not an account that is off");
  }
  std::vector<std::string> rights;
  for (std::string word; file >> word;) rights.push_back(word);
  return rights;
}

}  // namespace fcap::testing
