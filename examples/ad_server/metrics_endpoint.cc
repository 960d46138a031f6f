#include "metrics_endpoint.h"

#include <stdexcept>
#include <string>

#include <civetweb.h>

#include <fcap/prometheus.h>

namespace ad_server {
namespace {

int answer(mg_connection* connection, int status, const char* type, const std::string& text) {
  mg_printf(
      connection,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
      status, status == 200 ? "OK" : "Service Unavailable", type, text.size());
  mg_write(connection, text.data(), text.size());
  return status;
}

}  // namespace

MetricsEndpoint::MetricsEndpoint(const fcap::Checker& checker, int port) {
  const std::string listen = "127.0.0.1:" + std::to_string(port);
  const char* options[] = {"listening_ports", listen.c_str(), "num_threads", "2", nullptr};
  const mg_callbacks callbacks{};
  server_.reset(mg_start(&callbacks, nullptr, options));
  if (server_ == nullptr) throw std::runtime_error("--metrics-port: cannot listen on " + listen);
  // The handlers only read.
  auto* argument =
      const_cast<fcap::Checker*>(&checker);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  mg_set_request_handler(server_.get(), "/metrics", metrics, argument);
  mg_set_request_handler(server_.get(), "/health", health, argument);
}

int MetricsEndpoint::metrics(mg_connection* connection, void* checker) {
  return answer(connection, 200, "text/plain; version=0.0.4",
                fcap::prometheus_text(*static_cast<const fcap::Checker*>(checker)));
}

int MetricsEndpoint::health(mg_connection* connection, void* checker) {
  const fcap::CheckerHealth health = static_cast<const fcap::Checker*>(checker)->health();
  std::string text = health.ready ? "ready\n" : "not ready\n";
  for (const std::string& problem : health.problems) text += problem + "\n";
  return answer(connection, health.ready ? 200 : 503, "text/plain", text);
}

void MetricsEndpoint::Stop::operator()(mg_context* server) const {
  mg_stop(server);
}

}  // namespace ad_server
