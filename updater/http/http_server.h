#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <fcap/status.h>

struct mg_context;
struct mg_connection;

namespace fcap::updater {

/// An answer to GET.
struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Serves a few fixed pages over HTTP; any other path is 404, any method but GET and HEAD 405.
class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0: any free one
  };
  /// Answers for a path, or not at all. Called from several threads.
  using Pages = std::function<bool(const std::string& path, HttpAnswer& answer)>;

  /// Listens at once. Fails when the address cannot be used; the text names it.
  static Result<std::unique_ptr<HttpServer>> start(const Options& options, Pages pages);
  /// Waits for answers under way.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  explicit HttpServer(Pages pages) : pages_(std::move(pages)) {}
  static int handle(mg_connection* connection);

  Pages pages_;
  std::mutex said_mutex_;
  bool starting_ = true;  // guarded by said_mutex_
  std::string said_;      // guarded by said_mutex_: civetweb's last words at the start
  mg_context* context_ = nullptr;
  std::uint16_t port_ = 0;
};

}  // namespace fcap::updater
