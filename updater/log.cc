#include "updater/log.h"

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

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

// For people: only what would break the line or steer the terminal.
void append_plain(std::string_view text, spdlog::memory_buf_t& out) {
  for (const char c : text) {
    if (c == '\t') {
      out.push_back(' ');
    } else if (c == '\n') {
      fmt::format_to(std::back_inserter(out), "\\n");
    } else if (is_control(c)) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
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

}  // namespace

void configure_logging(const LogSettings& settings) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  const bool json = settings.format == LogSettings::Format::kJson;
  formatter->add_flag<EscapedText>('*', json ? append_json : append_plain);
  formatter->set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","text":"%*"})"
                              : "%Y-%m-%dT%H:%M:%S.%eZ %l %*");
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
    spdlog::log(kLevels[static_cast<std::size_t>(level)], "{}: {}", prefix, text);
  };
}

RepeatedLog::Turn RepeatedLog::take_turn(Clock::time_point now) noexcept {
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
  const Turn turn = take_turn(Clock::now());
  if (!turn.write) return;
  if (turn.left_out == 0) {
    spdlog::log(level, "{}", text);
  } else {
    spdlog::log(level, "{} ({} more like it were left out)", text, turn.left_out);
  }
}

}  // namespace fcap::updater
