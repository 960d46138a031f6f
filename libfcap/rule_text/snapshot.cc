#include "rule_text/snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file_handle.h"
#include "base/new_file.h"
#include "rule_text/snapshot_format.h"

namespace fcap::rule_text {
namespace {

constexpr std::string_view kMagic = "fcap-rules 4 ";
// From before the first release.
constexpr std::array<std::string_view, 3> kOlderMagics{"fcap-rules 1 ", "fcap-rules 2 ",
                                                       "fcap-rules 3 "};
// The header always has the same length, so that it can be filled in last.
constexpr std::size_t kHeaderBytesMax = 64;
// Far above a million rules; keeps a wrong path from filling the memory.
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

std::string header_line(std::uint64_t bytes, std::uint64_t hash) {
  constexpr std::size_t kDigits = 20;
  const std::string digits = std::to_string(bytes);
  return std::string(kMagic)
      .append(kDigits - digits.size(), '0')
      .append(digits)
      .append(" ")
      .append(hex64(hash))
      .append("\n");
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The header that a file with these rules has. Serialises them, which is much cheaper than writing
// them to a disk.
std::string header_of(const SnapshotView& rules) {
  SnapshotOutput output([](std::string_view) { return true; });
  write_rules(rules, output);
  return header_line(output.bytes(), output.hash());
}

// 0, or the error.
int write_file(int fd, const SnapshotView& rules) {
  if (!write_all(fd, header_line(0, 0))) return errno;
  int error = 0;
  SnapshotOutput output([&](std::string_view piece) {
    if (write_all(fd, piece)) return true;
    if (error == 0) error = errno;
    return false;
  });
  write_rules(rules, output);
  if (error != 0) return error;
  const std::string header = header_line(output.bytes(), output.hash());
  const ssize_t written = ::pwrite(fd, header.data(), header.size(), 0);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == header.size() ? 0 : EIO;
}

Status not_whole() {
  return corrupt("is incomplete or damaged: its length or checksum is not what its header says");
}

// Header and payload, of which `give_piece` gives one piece after the other.
Result<base::TableVersion> parse(std::uint64_t bytes, const SnapshotInput::GivePiece& give_piece,
                                 rules::SpecSink& sink) {
  if (bytes == 0) return corrupt("is empty");
  std::string header(header_line(0, 0).size(), '\0');
  std::size_t length = 0;
  while (length < header.size()) {
    const std::size_t got = give_piece(header.data() + length, header.size() - length);
    if (got == 0) break;
    length += got;
  }
  if (!header.starts_with(kMagic) || length != header.size()) {
    const bool is_older =
        std::any_of(kOlderMagics.begin(), kOlderMagics.end(),
                    [&](std::string_view magic) { return header.starts_with(magic); });
    return corrupt(is_older ? "is from before the first release: delete it"
                            : "does not begin with the header of a snapshot of format 4");
  }
  const std::uint64_t payload_bytes = bytes - header.size();
  SnapshotInput input(payload_bytes, give_piece);
  base::TableVersion version;
  const bool read = read_rules(input, version, sink);
  // What was read counts only once every byte is known to be right.
  if (header_line(payload_bytes, input.drain_and_hash()) != header) return not_whole();
  if (!read) return corrupt("has the right checksum, but does not hold a rule set");
  return version;
}

// A plain spec, to be written.
class SpecView {
 public:
  explicit SpecView(const RuleSetSpec& spec) : version_(spec.version) {
    for (const Rule& rule : spec.rules) rules_.push_back(&rule);
    for (const Campaign& campaign : spec.campaigns) campaigns_.push_back(&campaign);
  }
  [[nodiscard]] SnapshotView view() const {
    return {.version = {.version = version_}, .rules = rules_, .campaigns = campaigns_};
  }

 private:
  std::uint64_t version_;
  std::vector<const Rule*> rules_;
  std::vector<const Campaign*> campaigns_;
};

RuleSetSpec with_version(RuleSetSpec spec, std::uint64_t version) {
  spec.version = version;
  return spec;
}

}  // namespace

SnapshotView view_of(const RuleSet& set, base::TableVersion version) {
  return {.version = std::move(version),
          .rules = {set.rules().data(), set.rules().size()},
          .campaigns = {set.campaigns().data(), set.campaigns().size()}};
}

std::string snapshot_bytes(const RuleSetSpec& spec) {
  std::string payload;
  SnapshotOutput output([&](std::string_view piece) {
    payload.append(piece);
    return true;
  });
  write_rules(SpecView(spec).view(), output);
  return header_line(output.bytes(), output.hash()) + payload;
}

Status write_snapshot(const std::string& path, const RuleSetSpec& spec) {
  return write_snapshot(path, SpecView(spec).view());
}

Status write_snapshot(const std::string& path, const SnapshotView& rules) {
  base::NewFile file(path);
  if (!file.open()) return file_error("cannot write beside it", path, file.error());
  int error = write_file(file.fd(), rules);
  if (error == 0) error = file.replace();
  return error == 0 ? Status{} : file_error("cannot be written", path, error);
}

Status publish_snapshot(const std::string& path, const SnapshotView& rules) {
  Result<SnapshotFile> file = SnapshotFile::open(path);
  if (file.ok() && file.value().header() + "\n" == header_of(rules) && file.value().is_whole()) {
    touch_snapshot(path);
    return {};
  }
  return write_snapshot(path, rules);
}

void touch_snapshot(const std::string& path) noexcept {
  // Nobody depends on it: a file that cannot be touched only looks older than it is.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

std::string_view snapshot_header(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\n'));
}

SnapshotFile::SnapshotFile(std::string path, base::FileHandle file, std::uint64_t bytes)
    : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {
  std::string begin(kHeaderBytesMax, '\0');
  begin.resize(give(begin.data(), begin.size()));
  header_ = snapshot_header(begin);
}

Result<SnapshotFile> SnapshotFile::open(const std::string& path) {
  base::FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return file_error("cannot be opened", path, errno);
  struct stat about {};
  if (::fstat(file.fd(), &about) != 0) return file_error("cannot be read", path, errno);
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(kFileBytesMax)) {
    return Status::error(StatusCode::kCorrupt, "snapshot " + path + ": is not a snapshot file");
  }
  return SnapshotFile(path, std::move(file), static_cast<std::uint64_t>(about.st_size));
}

// A file that cannot be read on ends there; its checksum tells.
std::size_t SnapshotFile::give(char* to, std::size_t room) {
  while (true) {
    const ssize_t got = ::pread(file_.fd(), to, room, static_cast<off_t>(at_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    at_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }
}

bool SnapshotFile::is_whole() {
  if (!header_.starts_with(kMagic)) return false;
  const std::uint64_t payload_bytes = bytes_ - std::min(bytes_, header_.size() + 1);
  at_ = header_.size() + 1;
  SnapshotInput input(payload_bytes, [this](char* to, std::size_t room) { return give(to, room); });
  return header_line(payload_bytes, input.drain_and_hash()) == header_ + "\n";
}

Result<base::TableVersion> SnapshotFile::read(rules::SpecSink& sink) {
  at_ = 0;
  Result<base::TableVersion> version = parse(
      bytes_, [this](char* to, std::size_t room) { return give(to, room); }, sink);
  if (version.ok()) return version;
  const Status& why = version.status();
  return Status::error(why.code(), "snapshot " + path_ + ": " + why.text());
}

Result<Snapshot> load_snapshot(const std::string& path) {
  Result<SnapshotFile> file = SnapshotFile::open(path);
  if (!file.ok()) return file.status();
  rules::PlainSpecSink sink;
  Result<base::TableVersion> version = file.value().read(sink);
  if (!version.ok()) return version.status();
  return Snapshot{.spec = with_version(std::move(sink.spec), version.value().version),
                  .version = std::move(version).value()};
}

Result<RuleSetSpec> read_snapshot(const std::string& path) {
  Result<Snapshot> snapshot = load_snapshot(path);
  if (!snapshot.ok()) return snapshot.status();
  return std::move(snapshot.value().spec);
}

Result<RuleSetSpec> parse_snapshot(std::string_view bytes) {
  std::string_view rest = bytes;
  const auto give_piece = [&rest](char* to, std::size_t room) {
    const std::size_t given = rest.copy(to, room);
    rest.remove_prefix(given);
    return given;
  };
  rules::PlainSpecSink sink;
  const Result<base::TableVersion> version = parse(bytes.size(), give_piece, sink);
  if (!version.ok()) return version.status();
  return with_version(std::move(sink.spec), version.value().version);
}

}  // namespace fcap::rule_text
