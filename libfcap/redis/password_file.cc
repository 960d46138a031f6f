#include "redis/password_file.h"

#include "base/file.h"

namespace fcap::redis {
namespace {

constexpr std::size_t kPasswordBytesMax = 65'536;

}  // namespace

Result<std::string> read_password(const std::string& setting, const std::string& path) {
  auto password = base::read_file(path, kPasswordBytesMax);
  if (!password.ok()) {
    return Status::error(password.status().code(), setting + ": " + password.status().text());
  }
  std::string& text = password.value();
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty()) {
    return Status::error(StatusCode::kCorrupt, setting + ": " + path + " holds no password");
  }
  return password;
}

}  // namespace fcap::redis
