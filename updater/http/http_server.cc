#include "updater/http/http_server.h"

#include <string_view>
#include <utility>

#include <civetweb.h>
#include <fmt/core.h>

namespace fcap::updater {
namespace {

void send(mg_connection* connection, const HttpAnswer& answer, bool with_body) {
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "Connection: close\r\n\r\n",
      answer.status, mg_get_response_code_text(connection, answer.status), answer.content_type,
      answer.body.size());
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, answer.body.data(), answer.body.size());
}

std::string listening_ports(const HttpServer::Options& options) {
  const bool v6 =
      options.address.find(':') != std::string::npos && !options.address.starts_with('[');
  return v6 ? fmt::format("[{}]:{}", options.address, options.port)
            : fmt::format("{}:{}", options.address, options.port);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Options& options, Pages pages) {
  const std::string ports = listening_ports(options);
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(pages)));
  const char* const settings[] = {
      "listening_ports",       ports.c_str(), "num_threads", "2", "request_timeout_ms", "5000",
      "keep_alive_timeout_ms", "0",           nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &HttpServer::handle;
  callbacks.log_message = [](const mg_connection* connection, const char* text) {
    auto* const self = static_cast<HttpServer*>(mg_get_user_data(mg_get_context(connection)));
    const std::lock_guard lock(self->said_mutex_);
    // The first says why; what follows is its consequence.
    if (self->starting_ && self->said_.empty()) self->said_ = text;
    return 1;
  };
  server->context_ = mg_start(&callbacks, server.get(), const_cast<const char**>(settings));
  if (server->context_ == nullptr) {
    return Status::error(StatusCode::kUnavailable,
                         fmt::format("http.address, http.port: cannot listen on {}{}{}", ports,
                                     server->said_.empty() ? "" : ": ", server->said_));
  }
  {
    const std::lock_guard lock(server->said_mutex_);
    server->starting_ = false;
  }
  mg_server_port bound{};
  if (mg_get_server_ports(server->context_, 1, &bound) == 1) {
    server->port_ = static_cast<std::uint16_t>(bound.port);
  }
  return server;
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
}

int HttpServer::handle(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const auto* const self = static_cast<const HttpServer*>(request->user_data);
  const std::string_view method = request->request_method;
  HttpAnswer answer;
  if (method != "GET" && method != "HEAD") {
    answer.status = 405;
    answer.body = "only GET and HEAD\n";
  } else if (request->local_uri == nullptr || !self->pages_(request->local_uri, answer)) {
    answer = {.status = 404, .body = "not found\n"};
  }
  send(connection, answer, method != "HEAD");
  return answer.status;
}

}  // namespace fcap::updater
