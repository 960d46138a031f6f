#include <array>
#include <charconv>
#include <functional>
#include <stdexcept>
#include <string_view>

#include <zlib.h>

#include "traffic.h"

namespace ad_server {
namespace {

using std::chrono::steady_clock;

struct TrafficRow {
  std::string user;
  std::string campaign;
  std::string creative;
  std::int64_t unix_seconds = 0;
  std::size_t position = 0;
};

// Reads lines of a file that may be gzip-compressed.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) throw std::runtime_error("--log: cannot open " + path);
  }
  ~LineReader() { gzclose(file_); }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next(std::string& line) {
    std::array<char, 4096> buffer{};
    if (gzgets(file_, buffer.data(), static_cast<int>(buffer.size())) == nullptr) {
      int code = Z_OK;
      const char* text = gzerror(file_, &code);
      if (code != Z_OK && code != Z_STREAM_END) throw std::runtime_error(path_ + ": " + text);
      return false;
    }
    line = buffer.data();
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    ++number_;
    return true;
  }

  [[nodiscard]] std::string where() const { return path_ + ", line " + std::to_string(number_); }

 private:
  std::string path_;
  gzFile file_;
  std::size_t number_ = 0;
};

TrafficRow parse_row(std::string_view line, const LineReader& reader) {
  std::array<std::string_view, 4> fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto comma = line.find(',');
    if ((comma == std::string_view::npos) != (i == 3)) {
      throw std::runtime_error(reader.where() + ": expected user,campaign,creative,unix seconds");
    }
    fields[i] = line.substr(0, comma);
    if (i < 3) line.remove_prefix(comma + 1);
  }
  TrafficRow row{std::string(fields[0]), std::string(fields[1]), std::string(fields[2]), 0, 0};
  const auto* end = fields[3].data() + fields[3].size();
  const auto parsed = std::from_chars(fields[3].data(), end, row.unix_seconds);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    throw std::runtime_error(reader.where() + ": the time is not a whole number of seconds");
  }
  return row;
}

class LogTraffic final : public Traffic {
 public:
  explicit LogTraffic(const LogOptions& options) : options_(options), rows_(options.workers) {
    LineReader reader(options.path);
    std::string line;
    reader.next(line);  // the header
    while (reader.next(line)) {
      TrafficRow row = parse_row(line, reader);
      row.position = total_++;
      newest_ = std::max(newest_, row.unix_seconds);
      const std::size_t worker = std::hash<std::string>{}(row.user) % options.workers;
      rows_[worker].push_back(std::move(row));
    }
    if (total_ == 0) throw std::runtime_error("--log: " + options.path + " holds no impressions");
    next_.resize(options.workers, 0);
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    shift_ = now.time_since_epoch() - std::chrono::seconds(newest_);
    start_ = steady_clock::now();
  }

  std::optional<AdRequest> next(std::size_t worker) override {
    auto& rows = rows_.at(worker);
    if (next_[worker] == rows.size()) return std::nullopt;
    TrafficRow& row = rows[next_[worker]++];
    AdRequest request;
    request.user = options_.user_prefix + row.user;
    request.at = fcap::Instant(std::chrono::seconds(row.unix_seconds) + shift_);
    const double share = static_cast<double>(row.position) / static_cast<double>(total_);
    request.due = start_ + std::chrono::duration_cast<steady_clock::duration>(
                               std::chrono::duration<double>(options_.length) * share);
    request.offers.push_back({std::move(row.campaign), std::move(row.creative)});
    return request;
  }

 private:
  LogOptions options_;
  std::vector<std::vector<TrafficRow>> rows_;
  std::vector<std::size_t> next_;
  std::size_t total_ = 0;
  std::int64_t newest_ = 0;
  std::chrono::seconds shift_{0};
  steady_clock::time_point start_;
};

}  // namespace

std::unique_ptr<Traffic> make_log_traffic(const LogOptions& options) {
  return std::make_unique<LogTraffic>(options);
}

}  // namespace ad_server
