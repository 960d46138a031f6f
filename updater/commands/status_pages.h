#pragma once

#include <functional>
#include <string>
#include <utility>

#include "sources/rule_refresher.h"
#include "updater/http/http_server.h"
#include "updater/metrics/exposition.h"
#include "updater/metrics/updater_health.h"

namespace fcap::updater {

/// The pages that the daemon serves: /metrics, /healthz and /readyz.
///
/// Thread-safe. Everything given must outlive it.
class StatusPages {
 public:
  using Rules = std::function<sources::RefreshState()>;

  /// `rules`: empty where no source of rules is configured.
  StatusPages(const Health& health, const MetricsExposition& metrics, Rules rules)
      : health_(&health), metrics_(&metrics), rules_(std::move(rules)) {}

  /// As HttpServer::Pages.
  bool operator()(const std::string& path, HttpAnswer& answer) const;

 private:
  const Health* health_;
  const MetricsExposition* metrics_;
  Rules rules_;
};

}  // namespace fcap::updater
