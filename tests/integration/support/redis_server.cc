#include "support/redis_server.h"

namespace fcap::testing {

RedisServer::RedisServer(const std::vector<std::string>& server_arguments)
    : service_("redis", directory_.path()) {
  std::vector<std::string> arguments;
  if (!server_arguments.empty()) {
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), server_arguments.begin(), server_arguments.end());
  }
  service_.start(arguments);
}

std::string RedisServer::command(const std::vector<std::string>& words,
                                 const std::vector<std::string>& options) const {
  std::vector<std::string> all = {"redis-cli", "-h", "127.0.0.1", "-p", service_.value("port")};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), words.begin(), words.end());
  std::string output = run(all).output;
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

}  // namespace fcap::testing
