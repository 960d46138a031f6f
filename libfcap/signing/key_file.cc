// A file of signing keys that is looked at regularly.
#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <utility>

#include <poll.h>

#include <fcap/signed_id.h>

#include "base/background_thread.h"
#include "base/file_stamp.h"
#include "base/outside_text.h"

namespace fcap {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5'000};

}  // namespace

struct SigningKeyFile::KeyFileParts {
  Status look(bool always);
  void run();
  void tell(LogLevel level, const std::string& text) const {
    if (log) log(level, text);
  }
  void tell_of(const SigningKeys& former, const SigningKeys& current) const;
  void tell_of_readers() const;

  std::string path;
  LogCallback log;
  std::mutex looking;     // one look at a time
  base::FileStamp stamp;  // of what the keys were read from; guarded by looking
  std::string problem;    // why the file could not be used when last looked at; guarded by looking
  mutable std::mutex mutex;
  std::shared_ptr<const SigningKeys> keys;  // guarded by mutex
  base::BackgroundThread thread;
};

void SigningKeyFile::KeyFileParts::tell_of(const SigningKeys& former,
                                           const SigningKeys& current) const {
  std::string names;
  for (const std::string& id : current.ids()) names.append(names.empty() ? "" : ", ").append(id);
  tell(LogLevel::kInfo, "signing keys: \"" + path + "\" was read again: " + names);
  for (const std::string& id : former.ids()) {
    if (std::ranges::find(current.ids(), id) != current.ids().end()) continue;
    tell(LogLevel::kWarning, "signing keys: key \"" + id +
                                 "\" was removed: ids that it signed are refused from now on, even "
                                 "when old events are read again");
  }
}

// Not a reason to refuse it: secrets that Kubernetes mounts are readable by all accounts of their
// container, unless defaultMode says otherwise.
void SigningKeyFile::KeyFileParts::tell_of_readers() const {
  if (!base::is_readable_by_all(path)) return;
  tell(LogLevel::kWarning, "signing keys: every account of this machine can read \"" + path +
                               "\", and so can sign impressions: take that right away (chmod o=)");
}

Status SigningKeyFile::KeyFileParts::look(bool always) {
  const std::lock_guard lock_looking(looking);
  const base::FileStamp found = base::stamp_of(path);
  if (!always && found == stamp) return {};
  auto read = SigningKeys::read(path);
  // It may be half written, or be unreadable for a while: it is looked at again each time.
  if (!read.ok()) {
    const bool told = std::exchange(problem, read.status().text()) == read.status().text();
    if (!told) tell(LogLevel::kWarning, problem + "; the former keys stay");
    return read.status();
  }
  stamp = found;
  problem.clear();
  tell_of_readers();
  std::shared_ptr<const SigningKeys> former;
  {
    const std::lock_guard lock(mutex);
    former = std::exchange(keys, read.value());
  }
  if (former) tell_of(*former, *read.value());
  return {};
}

void SigningKeyFile::KeyFileParts::run() {
  const base::LoopEvents events = thread.events();
  for (;;) {
    pollfd stop{events.stop, POLLIN, 0};
    ::poll(&stop, 1, static_cast<int>(kLookEvery.count()));
    if (stop.revents != 0) return;
    (void)look(false).ok();
  }
}

SigningKeyFile::SigningKeyFile(std::unique_ptr<KeyFileParts> parts) : parts_(std::move(parts)) {}
SigningKeyFile::~SigningKeyFile() {
  parts_->thread.stop();
}

Result<std::unique_ptr<SigningKeyFile>> SigningKeyFile::open(std::string path, LogCallback log) {
  auto parts = std::make_unique<KeyFileParts>();
  parts->path = std::move(path);
  parts->stamp = base::stamp_of(parts->path);
  auto read = SigningKeys::read(parts->path);
  if (!read.ok()) return read.status();
  parts->keys = std::move(read).value();
  parts->log = base::one_line_log(std::move(log));
  parts->tell_of_readers();
  KeyFileParts* const running = parts.get();
  std::unique_ptr<SigningKeyFile> file(new SigningKeyFile(std::move(parts)));
  if (Status status = running->thread.start("fcap-keys", [running] { running->run(); });
      !status.ok()) {
    return status;
  }
  return file;
}

std::shared_ptr<const SigningKeys> SigningKeyFile::keys() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->keys;
}

Status SigningKeyFile::reload() {
  return parts_->look(true);
}

}  // namespace fcap
