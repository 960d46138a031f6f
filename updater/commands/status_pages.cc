#include "updater/commands/status_pages.h"

#include "updater/metrics/rules_note.h"

namespace fcap::updater {

bool StatusPages::operator()(const std::string& path, HttpAnswer& answer) const {
  if (path == "/metrics") {
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = metrics_->text();
  } else if (path == "/healthz") {
    const bool healthy = health_->healthy(Health::Clock::now());
    answer.status = healthy ? 200 : 503;
    answer.body = healthy ? "ok\n" : "the main loop has stalled\n";
  } else if (path == "/readyz") {
    std::string why;
    const bool ready = health_->ready(Health::Clock::now(), why);
    answer.status = ready ? 200 : 503;
    answer.body = ready ? "ready\n" : why;
    // Counting does not depend on rules, so these are notes and not reasons to be unready.
    if (rules_) answer.body += rules_note(rules_());
  } else {
    return false;
  }
  return true;
}

}  // namespace fcap::updater
