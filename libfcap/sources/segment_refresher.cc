#include "sources/segment_refresher.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "base/background_thread.h"
#include "sources/look_timer.h"
#include "sources/reload_policy.h"
#include "sources/segment_source.h"

namespace fcap::sources {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A whole load, a hundred million members included.
constexpr milliseconds kLoadTimeout{300'000};

std::unique_ptr<SegmentSource> make_source(const SegmentSourceOptions& segments,
                                           const RuleSourceOptions& rules) {
  if (segments.postgres) return std::make_unique<PostgresSegments>(rules.postgres);
  return std::make_unique<SegmentDirectory>(segments.directory);
}

Result<LoadedSegments> load_once(SegmentSource& source, milliseconds timeout) {
  Result<std::optional<LoadedSegments>> loaded = source.look({steady_clock::now() + timeout});
  if (!loaded.ok()) return loaded.status();
  return *std::move(loaded).value();
}

std::string size_text(const SegmentSet& set) {
  return std::to_string(set.names().size()) + " segments, " + std::to_string(set.memory().members) +
         " members, " + std::to_string(set.memory().bytes()) + " bytes";
}

}  // namespace

class SegmentRefresher::SegmentThread {
 public:
  SegmentThread(const SegmentSourceOptions& segments, const RuleSourceOptions& rules, Sink sink,
                LogCallback log, ThreadCallback thread_started)
      : thread_started_(std::move(thread_started)),
        options_status_(check_segment_options(segments, rules)),
        source_(make_source(segments, rules)),
        sink_(std::move(sink)),
        log_(std::move(log)),
        policy_{rules.shrink_refused_below, rules.accept_any_shrink},
        timer_(rules.poll_interval, thread_.events()) {
    if (segments.postgres && rules.listen) timer_.listen(rules.postgres, "fcap_segments");
  }
  ~SegmentThread() { stop(); }
  SegmentThread(const SegmentThread&) = delete;
  SegmentThread& operator=(const SegmentThread&) = delete;

  Status start() {
    if (!options_status_.ok()) return options_status_;
    return thread_.start(
        "fcap-segments", [this] { run(); }, thread_started_);
  }

  Status wait_for_first_look(milliseconds wait) {
    std::unique_lock lock(mutex_);
    first_look_over_.wait_for(lock, wait, [this] { return looked_; });
    if (state_.reloads > 0) return {};
    return Status::error(
        StatusCode::kUnavailable,
        "no segments yet: " + (looked_ ? state_.last_error : "they are still being read"), true);
  }

  void stop() noexcept { thread_.stop(); }

  [[nodiscard]] SegmentRefreshState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  void run() {
    while (timer_.wait()) {
      bool changed = false;
      const Status status = look(changed);
      if (!timer_.stopping()) note(status);
      timer_.looked(status.ok(), changed);
    }
  }

  Status look(bool& changed) {
    try {
      Result<std::optional<LoadedSegments>> loaded =
          source_->look({steady_clock::now() + kLoadTimeout, thread_.events().stop});
      if (!loaded.ok()) return loaded.status();
      if (timer_.stopping()) return {};
      // What was refused is not read again until the source changes.
      if (!loaded.value()) return refusal_;
      changed = state().reloads > 0;
      refusal_ = hand_out_if_accepted(*loaded.value());
      return refusal_;
    } catch (const std::exception& failure) {
      // Out of memory, most likely; the host must not die of it.
      return Status::error(StatusCode::kInternal, std::string("segments: ") + failure.what(), true);
    }
  }

  Status hand_out_if_accepted(const LoadedSegments& loaded) {
    ReloadPolicy policy = policy_;
    policy.accepted_version = loaded.accepted_version;
    const ReloadDecision judgement = decide_segments(current_.get(), *loaded.set, policy);
    const std::string version = "version " + std::to_string(loaded.set->version());
    if (!judgement.accepted) {
      return Status::error(StatusCode::kRefused,
                           "segments: " + version + " is refused, " + judgement.remark, true);
    }
    if (!judgement.remark.empty()) {
      log(LogLevel::kWarning, "segments: " + version + ": " + judgement.remark);
    }
    hand_out(loaded);
    return {};
  }

  void hand_out(const LoadedSegments& loaded) {
    log(LogLevel::kInfo, "segments: version " + std::to_string(loaded.set->version()) + ": " +
                             size_text(*loaded.set));
    for (const std::string& remark : loaded.remarks) {
      log(LogLevel::kWarning, "segments: " + remark);
    }
    current_ = loaded.set;
    sink_(loaded.set);
    const std::lock_guard lock(mutex_);
    ++state_.reloads;
  }

  void note(const Status& status) {
    bool news = false;
    {
      const std::lock_guard lock(mutex_);
      if (!status.ok()) ++state_.failed;
      news = state_.last_error != status.text();
      state_.last_error = status.text();
      looked_ = true;
    }
    first_look_over_.notify_all();
    // The same failure every few seconds is one line, not thousands.
    if (news && !status.ok()) log(LogLevel::kError, "segments: not refreshed: " + status.text());
  }

  void log(LogLevel level, const std::string& text) const {
    if (log_) log_(level, text);
  }

  const ThreadCallback thread_started_;
  base::BackgroundThread thread_;
  const Status options_status_;
  const std::unique_ptr<SegmentSource> source_;
  const Sink sink_;
  const LogCallback log_;
  const ReloadPolicy policy_;

  // What follows is the thread's in run() alone.
  LookTimer timer_;
  std::shared_ptr<const SegmentSet> current_;
  Status refusal_;  // of what the source has now

  mutable std::mutex mutex_;
  std::condition_variable first_look_over_;
  bool looked_ = false;
  SegmentRefreshState state_;
};

SegmentRefresher::SegmentRefresher(const SegmentSourceOptions& segments,
                                   const RuleSourceOptions& rules, Sink sink, LogCallback log,
                                   ThreadCallback thread_started)
    : impl_(std::make_unique<SegmentThread>(segments, rules, std::move(sink), std::move(log),
                                            std::move(thread_started))) {}

SegmentRefresher::~SegmentRefresher() = default;

Status SegmentRefresher::start() {
  return impl_->start();
}

Status SegmentRefresher::wait_for_first_look(milliseconds wait) {
  return impl_->wait_for_first_look(wait);
}

void SegmentRefresher::stop() noexcept {
  impl_->stop();
}

SegmentRefreshState SegmentRefresher::state() const {
  return impl_->state();
}

Status check_segment_options(const SegmentSourceOptions& segments, const RuleSourceOptions& rules) {
  const auto wrong = [](const char* text) {
    return Status::error(StatusCode::kInvalidArgument, text);
  };
  if (segments.postgres && !segments.directory.empty()) {
    return wrong("segments.postgres and segments.directory: only one of them can be the source");
  }
  if (segments.postgres && rules.postgres.empty()) {
    return wrong("segments.postgres needs the connection string rules.postgres");
  }
  if (segments.directory.find('\0') != std::string::npos) {
    return wrong("segments.directory must not contain a NUL");
  }
  return {};
}

Result<LoadedSegments> load_segments_from_postgres(const std::string& conninfo,
                                                   milliseconds timeout) {
  PostgresSegments source(conninfo);
  return load_once(source, timeout);
}

Result<LoadedSegments> load_segments_from_directory(const std::string& path) {
  SegmentDirectory source(path);
  return load_once(source, kLoadTimeout);
}

}  // namespace fcap::sources
