#pragma once

#include <string_view>

#include "redis/reply.h"

namespace fcap::redis {

class Request;

/// Whether a node of a cluster says that the command belongs to another one. It was not executed.
[[nodiscard]] inline bool is_redirect(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::kError &&
         (reply.text.starts_with("MOVED ") || reply.text.starts_with("ASK "));
}

/// Where requests go that a node of a cluster does not serve.
class Redirects {
 public:
  /// Notes what the error says, and takes over the request, whose only command it answers. With a
  /// null request it only notes the error.
  virtual void redirect(Request* request, std::string_view error) = 0;

 protected:
  ~Redirects() = default;
};

}  // namespace fcap::redis
