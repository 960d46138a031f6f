#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fcap::testing {

/// Whether a test has something that it needs: `there`. Where the environment's `required_by` is
/// set, as ./dev test sets it, a lack throws std::runtime_error with `missing` instead: a machine
/// that cannot run the tests must not look like one that has passed them.
bool present(bool there, const std::string& missing,
             const char* required_by = "FCAP_REQUIRE_SERVICES");

/// One private server of a kind that scripts/service knows ("redis", "kafka", "postgres"). It ends
/// with this object, and with this process even if that is killed. Every action throws
/// std::runtime_error with the script's message when it fails.
class Service {
 public:
  Service(std::string kind, std::filesystem::path directory);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Starts it on a free port, or again on the port it had. `arguments` go to the script; what
  /// follows a "--" among them goes to the server.
  void start(const std::vector<std::string>& arguments = {});
  void stop() { act("stop"); }
  void kill() { act("kill"); }
  void freeze() { act("freeze"); }
  void thaw() { act("thaw"); }

  /// Finds the server that somebody else has started in this directory, in place of start(). It
  /// outlives this object, and an action that would disturb those who share it throws
  /// std::logic_error.
  void attach();

  /// Any action of the script.
  void act(const std::string& action, const std::vector<std::string>& arguments = {});

  /// What the last start() printed under this name, such as "port"; throws if nothing.
  [[nodiscard]] const std::string& value(const std::string& name) const;
  [[nodiscard]] int pid() const { return std::stoi(value("pid")); }

 private:
  std::string kind_;
  std::filesystem::path directory_;
  std::map<std::string, std::string> values_;
  bool attached_ = false;
};

}  // namespace fcap::testing
