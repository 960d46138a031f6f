#pragma once

#include <memory>

#include <fcap/checker.h>

struct mg_context;
struct mg_connection;

namespace ad_server {

/// Serves the Checker's statistics at http://127.0.0.1:PORT/metrics for Prometheus, and its health
/// at /health.
class MetricsEndpoint {
 public:
  /// Throws std::runtime_error where the port cannot be had.
  MetricsEndpoint(const fcap::Checker& checker, int port);

 private:
  static int metrics(mg_connection* connection, void* checker);
  static int health(mg_connection* connection, void* checker);

  struct Stop {
    void operator()(mg_context* server) const;
  };
  std::unique_ptr<mg_context, Stop> server_;
};

}  // namespace ad_server
