#include "updater/process/process_log.h"

#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/outside_text.h"
#include "updater/process/log_members.h"

namespace fcap::updater {
namespace {

spdlog::level::level_enum to_spdlog(LogSettings::Level level) noexcept {
  switch (level) {
    case LogSettings::Level::kDebug:
      return spdlog::level::debug;
    case LogSettings::Level::kInfo:
      return spdlog::level::info;
    case LogSettings::Level::kWarning:
      return spdlog::level::warn;
    case LogSettings::Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Log texts quote outside bytes (ids, server errors), so everything that JSON or a terminal could
// trip over is escaped; bytes from 0x80 up are passed on as they are.
void append_json(std::string_view text, spdlog::memory_buf_t& out) {
  for (const char c : text) {
    if (is_control(c)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
}

// For people.
void append_plain(std::string_view text, spdlog::memory_buf_t& out) {
  const std::string line = base::one_line(text);
  out.append(line.data(), line.data() + line.size());
}

using Append = void (*)(std::string_view text, spdlog::memory_buf_t& out);

class EscapedText final : public spdlog::custom_flag_formatter {
 public:
  explicit EscapedText(Append append) noexcept : append_(append) {}
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    append_({message.payload.data(), message.payload.size()}, out);
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedText>(append_);
  }

 private:
  Append append_;
};

// The members that a JSON line has besides its text, each with a comma in front.
class JsonMembers final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const LogMembers members = log_members({message.payload.data(), message.payload.size()});
    const auto to = std::back_inserter(out);
    if (members.partition) fmt::format_to(to, R"(,"partition":{})", *members.partition);
    if (members.offset) fmt::format_to(to, R"(,"offset":{})", *members.offset);
    if (!members.code.empty()) fmt::format_to(to, R"(,"code":"{}")", members.code);
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMembers>();
  }
};

// The priority in front of a line, as sd-daemon(3) has it.
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string_view priority = message.level >= spdlog::level::err    ? SD_ERR
                                      : message.level == spdlog::level::warn ? SD_WARNING
                                      : message.level == spdlog::level::info ? SD_INFO
                                                                             : SD_DEBUG;
    out.append(priority.data(), priority.data() + priority.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }
};

// Whether standard error goes to the journal: systemd says to which file it has connected it.
bool goes_to_journal() noexcept {
  const char* const stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe)
  struct stat about = {};
  if (stream == nullptr || fstat(STDERR_FILENO, &about) != 0) return false;
  return stream == fmt::format("{}:{}", about.st_dev, about.st_ino);
}

std::string pattern_of(LogSettings::Format format, bool journal) {
  std::string pattern = journal ? "%@" : "";
  if (format == LogSettings::Format::kJson) {
    return pattern + R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","text":"%*"%&})";
  }
  // The journal has a time and a priority of its own for each line.
  return pattern + (journal ? "%*" : "%Y-%m-%dT%H:%M:%S.%eZ %l %*");
}

}  // namespace

void configure_logging(const LogSettings& settings) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  const bool json = settings.format == LogSettings::Format::kJson;
  formatter->add_flag<EscapedText>('*', json ? append_json : append_plain);
  formatter->add_flag<JsonMembers>('&');
  formatter->add_flag<JournalPriority>('@');
  formatter->set_pattern(pattern_of(settings.format, goes_to_journal()));
  auto logger =
      std::make_shared<spdlog::logger>("fcap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  logger->set_level(to_spdlog(settings.level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

LogCallback log_callback(std::string_view part) {
  return [prefix = std::string(part)](LogLevel level, std::string_view text) {
    static constexpr spdlog::level::level_enum kLevels[] = {
        spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    const auto to = kLevels[static_cast<std::size_t>(level)];
    // Some texts say by themselves which part they are of.
    const bool says_part = text.starts_with(prefix) && text.size() > prefix.size() &&
                           (text[prefix.size()] == ':' || text[prefix.size()] == ' ');
    if (says_part) return spdlog::log(to, "{}", text);
    spdlog::log(to, "{}: {}", prefix, text);
  };
}

RepeatedLog::LineTurn RepeatedLog::take_turn(Clock::time_point now) noexcept {
  const std::lock_guard lock(mutex_);
  if (written_ && now - last_ < interval_) {
    ++left_out_;
    return {};
  }
  written_ = true;
  last_ = now;
  return {.write = true, .left_out = std::exchange(left_out_, 0)};
}

void RepeatedLog::write(spdlog::level::level_enum level, std::string_view text) noexcept {
  const LineTurn turn = take_turn(Clock::now());
  if (!turn.write) return;
  if (turn.left_out == 0) {
    spdlog::log(level, "{}", text);
  } else {
    spdlog::log(level, "{} ({} more like it were left out)", text, turn.left_out);
  }
}

}  // namespace fcap::updater
