#include "config/snapshot.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "config/file_handle.h"
#include "config/rule_json.h"

namespace fcap::config {
namespace {

constexpr std::string_view kMagic = "fcap-rules 1 ";
/// Far above a million rules; keeps a wrong path from filling the memory.
constexpr std::size_t kFileBytesMax = std::size_t{2} << 30;

Status file_error(std::string_view what, const std::string& path, int error) {
  const StatusCode code = error == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
  std::string text("snapshot ");
  text.append(path).append(": ").append(what).append(": ");
  text.append(std::generic_category().message(error));
  return Status::error(code, std::move(text), /*retryable=*/true);
}

Status corrupt(std::string_view what) {
  return Status::error(StatusCode::kCorrupt, std::string(what));
}

std::string hex64(std::uint64_t value) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return digits.data();
}

std::string header_of(std::string_view payload) {
  return std::string(kMagic) + std::to_string(payload.size()) + " " +
         hex64(XXH3_64bits(payload.data(), payload.size())) + "\n";
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// A rename survives a crash only once its directory is on disk.
void sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const FileHandle handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.open()) ::fsync(handle.fd());
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".new." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1));
}

}  // namespace

std::string snapshot_bytes(const RuleSetSpec& spec) {
  const std::string payload = to_rules_json(spec);
  return header_of(payload) + payload;
}

Status write_snapshot(const std::string& path, const RuleSetSpec& spec) {
  const std::string bytes = snapshot_bytes(spec);
  const std::string temporary = temporary_name(path);
  // The process's umask says who else may read it; nobody else may ever write it.
  FileHandle file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.open()) return file_error("cannot write beside it", path, errno);
  int error = write_all(file.fd(), bytes);
  if (error == 0 && ::fsync(file.fd()) != 0) error = errno;
  file.close();
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return file_error("cannot be written", path, error);
  }
  sync_directory_of(path);
  return {};
}

Result<std::string> read_snapshot_bytes(const std::string& path) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return file_error("cannot be opened", path, errno);
  struct stat about {};
  if (::fstat(file.fd(), &about) != 0) return file_error("cannot be read", path, errno);
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(kFileBytesMax)) {
    return Status::error(StatusCode::kCorrupt, "snapshot " + path + ": is no snapshot file");
  }
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(file.fd(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno != EINTR) return file_error("cannot be read", path, errno);
    if (got == 0) break;
    if (got > 0) length += static_cast<std::size_t>(got);
  }
  bytes.resize(length);
  return bytes;
}

std::string_view snapshot_header(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\n'));
}

Result<RuleSetSpec> read_snapshot(const std::string& path) {
  Result<std::string> bytes = read_snapshot_bytes(path);
  if (!bytes.ok()) return bytes.status();
  Result<RuleSetSpec> spec = parse_snapshot(bytes.value());
  if (spec.ok()) return spec;
  return Status::error(spec.status().code(), "snapshot " + path + ": " + spec.status().text());
}

Result<std::string_view> snapshot_payload(std::string_view bytes) {
  if (bytes.empty()) return corrupt("is empty");
  const std::string_view header = snapshot_header(bytes);
  if (!header.starts_with(kMagic) || header.size() == bytes.size()) {
    return corrupt("does not begin with the header of a snapshot of format 1");
  }
  const std::string_view payload = bytes.substr(header.size() + 1);
  // The header follows from the payload, so comparing the two checks every byte of both.
  const std::string expected = header_of(payload);
  if (header != std::string_view(expected).substr(0, expected.size() - 1)) {
    return corrupt("is not whole: its length or checksum is not what its header says");
  }
  return payload;
}

Result<RuleSetSpec> parse_snapshot(std::string_view bytes) {
  const Result<std::string_view> payload = snapshot_payload(bytes);
  if (!payload.ok()) return payload.status();
  Result<RuleSetSpec> spec = parse_rules_json(payload.value());
  if (spec.ok()) return spec;
  return corrupt(spec.status().text());
}

}  // namespace fcap::config
