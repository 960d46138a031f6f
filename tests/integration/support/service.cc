#include "support/service.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "support/process.h"
#include "test_paths.h"

namespace fcap::testing {

bool present(bool there, const std::string& missing, const char* required_by) {
  const char* required = std::getenv(required_by);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (!there && required != nullptr && *required != '\0') {
    throw std::runtime_error(missing + ", and " + required_by + " is set");
  }
  return there;
}

Service::Service(std::string kind, std::filesystem::path directory)
    : kind_(std::move(kind)), directory_(std::move(directory)) {}

Service::~Service() {
  if (attached_) return;
  try {
    act("kill");
  } catch (const std::exception&) {
    // The script's watcher ends the server with this process.
  }
}

void Service::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--port", "0", "--owner", std::to_string(getpid())};
  all.insert(all.end(), arguments.begin(), arguments.end());
  act("start", all);
}

void Service::attach() {
  act("status");
  attached_ = true;
}

void Service::act(const std::string& action, const std::vector<std::string>& arguments) {
  if (attached_ && action != "status" && action != "create-topic") {
    throw std::logic_error(kind_ + " " + action +
                           ": other tests share this server; tests that disturb it are named in " +
                           "tests/integration/CMakeLists.txt (own_broker)");
  }
  std::vector<std::string> command = {std::string(FCAP_SOURCE_DIR) + "/scripts/service", kind_,
                                      action, "--dir", directory_.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Finished finished = run(command);
  if (finished.exit_code != 0) {
    throw std::runtime_error("scripts/service " + kind_ + " " + action + ": " + finished.errors);
  }
  std::istringstream lines(finished.output);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) values_[line.substr(0, equals)] = line.substr(equals + 1);
  }
}

const std::string& Service::value(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw std::runtime_error(kind_ + " has told no " + name);
  return found->second;
}

}  // namespace fcap::testing
