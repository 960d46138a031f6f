// Segments from the files of a directory.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_handle.h"
#include "sources/id_lines.h"
#include "sources/segment_source.h"

namespace fcap::sources {
namespace {

constexpr std::string_view kIdsSuffix = ".ids";
constexpr std::string_view kRoaringSuffix = ".roaring64";
constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;
// How large a bitmap may be, which is read as a whole: far above what a segment of all people
// needs.
constexpr std::uint64_t kBitmapBytesMax = std::uint64_t{4} << 30U;

struct SegmentFile {
  std::string name;
  std::string segment;
  bool is_bitmap = false;
  // Changes whenever the file is replaced or rewritten.
  std::string identity;
  std::uint64_t bytes = 0;
  std::int64_t modified_ms = 0;
};

struct Listing {
  std::vector<SegmentFile> files;  // by name
  std::vector<std::string> remarks;

  [[nodiscard]] std::string identity() const {
    std::string all;
    for (const SegmentFile& file : files) all.append(file.name).append(file.identity);
    return all;
  }
};

Status failure(const std::string& where, int error) {
  return Status::error(error == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable,
                       where + ": " + std::generic_category().message(error), true);
}

void describe(const struct stat& about, SegmentFile& file) {
  const auto nanoseconds = std::int64_t{about.st_mtim.tv_nsec};
  file.bytes = static_cast<std::uint64_t>(about.st_size);
  file.modified_ms = std::int64_t{about.st_mtim.tv_sec} * 1000 + nanoseconds / 1'000'000;
  file.identity = '\0' + std::to_string(about.st_dev) + ' ' + std::to_string(about.st_ino) + ' ' +
                  std::to_string(about.st_size) + ' ' + std::to_string(about.st_mtim.tv_sec) + ' ' +
                  std::to_string(nanoseconds) + '\n';
}

// The segment and kind that a file's name says. False: neither.
bool read_name(SegmentFile& file) {
  for (const std::string_view suffix : {kIdsSuffix, kRoaringSuffix}) {
    if (file.name.size() <= suffix.size() || !file.name.ends_with(suffix)) continue;
    file.segment = file.name.substr(0, file.name.size() - suffix.size());
    file.is_bitmap = suffix == kRoaringSuffix;
    return true;
  }
  return false;
}

// One look into a directory. It is opened once, so that all files are of the same one even when
// its name is given to another meanwhile.
class DirectoryReader {
 public:
  DirectoryReader(const std::string& path, const postgres::PgWait& wait)
      : path_(path),
        wait_(wait),
        directory_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!directory_.open()) status_ = failure("segments directory " + path, errno);
  }

  Result<Listing> list() {
    if (!status_.ok()) return status_;
    Listing listing;
    // readdir() moves the descriptor that it is given, and closes it.
    base::FileHandle again(::openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(
        again.open() ? ::fdopendir(again.fd()) : nullptr, &::closedir);
    if (entries == nullptr) return failure("segments directory " + path_, errno);
    (void)again.release();
    errno = 0;
    while (const dirent* entry = ::readdir(entries.get())) {  // NOLINT(concurrency-mt-unsafe)
      const std::string_view name(static_cast<const char*>(entry->d_name));
      if (!name.starts_with('.')) note(std::string(name), listing);
      errno = 0;
    }
    if (errno != 0) return failure("segments directory " + path_, errno);
    std::sort(listing.files.begin(), listing.files.end(),
              [](const SegmentFile& a, const SegmentFile& b) { return a.name < b.name; });
    std::sort(listing.remarks.begin(), listing.remarks.end());
    return listing;
  }

  Status read(const SegmentFile& file, SegmentSetBuilder& builder) {
    const std::string where = path_ + "/" + file.name;
    const base::FileHandle handle(
        ::openat(directory_.fd(), file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!handle.open()) return failure(where, errno);
    Status status = builder.name(file.segment);
    if (status.ok()) {
      status = file.is_bitmap ? read_bitmap(handle.fd(), file, builder)
                              : read_ids(handle.fd(), file, builder);
    }
    if (!status.ok()) return Status::error(status.code(), where + ": " + status.text(), true);
    struct stat about {};
    SegmentFile after;
    if (::fstat(handle.fd(), &about) != 0) return failure(where, errno);
    describe(about, after);
    if (after.identity == file.identity) return {};
    return Status::error(StatusCode::kUnavailable, where + ": was changed while it was read", true);
  }

 private:
  void note(std::string name, Listing& listing) const {
    SegmentFile file;
    file.name = std::move(name);
    struct stat about {};
    // One that has gone since is not there.
    if (::fstatat(directory_.fd(), file.name.c_str(), &about, 0) != 0) return;
    if (!read_name(file) || !S_ISREG(about.st_mode)) {
      listing.remarks.push_back(path_ + "/" + file.name + " is ignored: it is not a file NAME" +
                                std::string(kIdsSuffix) + " or NAME" + std::string(kRoaringSuffix));
      return;
    }
    describe(about, file);
    listing.files.push_back(std::move(file));
  }

  // Reads up to `size` bytes; fewer only at the file's end.
  Result<std::size_t> fill(int fd, char* bytes, std::size_t size) const {
    std::size_t length = 0;
    while (length < size) {
      pollfd stop{wait_.stop_fd, POLLIN, 0};
      if (::poll(&stop, 1, 0) > 0) {
        return Status::error(StatusCode::kUnavailable, "shutting down", true);
      }
      const ssize_t got = ::read(fd, bytes + length, std::min(size - length, kBlockBytes));
      if (got == 0) break;
      if (got > 0) length += static_cast<std::size_t>(got);
      if (got < 0 && errno != EINTR) {
        return Status::error(StatusCode::kUnavailable, std::generic_category().message(errno),
                             true);
      }
    }
    return length;
  }

  Status read_bitmap(int fd, const SegmentFile& file, SegmentSetBuilder& builder) const {
    if (file.bytes > kBitmapBytesMax) {
      return Status::error(StatusCode::kCorrupt, "has more than 4 GiB");
    }
    std::string bytes(file.bytes, '\0');
    const Result<std::size_t> length = fill(fd, bytes.data(), bytes.size());
    if (!length.ok()) return length.status();
    return builder.add_bitmap(file.segment, std::string_view(bytes).substr(0, length.value()));
  }

  Status read_ids(int fd, const SegmentFile& file, SegmentSetBuilder& builder) const {
    IdLines lines(file.segment, builder);
    std::string block(kBlockBytes, '\0');
    while (true) {
      const Result<std::size_t> got = fill(fd, block.data(), block.size());
      if (!got.ok()) return got.status();
      Status status = lines.read(std::string_view(block).substr(0, got.value()));
      if (!status.ok()) return status;
      if (got.value() < block.size()) return lines.finish();
    }
  }

  const std::string& path_;
  const postgres::PgWait& wait_;
  base::FileHandle directory_;
  Status status_;
};

}  // namespace

Result<std::optional<LoadedSegments>> SegmentDirectory::look(const postgres::PgWait& wait) {
  DirectoryReader reader(path_, wait);
  Result<Listing> listed = reader.list();
  if (!listed.ok()) return listed.status();
  Listing& listing = listed.value();
  std::string identity = listing.identity();
  if (identity == given_) return std::optional<LoadedSegments>();
  SegmentSetBuilder builder;
  std::int64_t version = 0;
  for (const SegmentFile& file : listing.files) {
    if (Status status = reader.read(file, builder); !status.ok()) return status;
    version = std::max(version, file.modified_ms);
  }
  given_ = std::move(identity);
  return std::optional(LoadedSegments{
      std::move(builder).finish(static_cast<std::uint64_t>(version)), std::move(listing.remarks)});
}

}  // namespace fcap::sources
