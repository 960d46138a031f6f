#include "cli/simulate/log_reading.h"

#include <string_view>

#include <fmt/format.h>

#include "cli/simulate/csv_log.h"
#include "cli/simulate/line_source.h"
#include "events/event_decoder.h"
#include "kafka/range_reader.h"

namespace fcap::cli {
namespace {

// The clock is asked once in so many events.
constexpr std::size_t kReportEvery = 4096;

std::string text_of(const events::Rejected& rejected) {
  std::string text(events::to_string(rejected.reason));
  if (!rejected.member.empty()) text += fmt::format(": {}", rejected.member);
  return text;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

Status read_csv(LineSource& lines, const std::string& path, CsvLog csv, ImpressionLog& log,
                Rejections& rejections, Progress& progress) {
  std::string_view line;
  bool has_header = false;
  while (!has_header && lines.next(line)) {
    if (is_blank(line)) continue;
    if (Status status = csv.read_header(line); !status.ok()) {
      return Status::error(status.code(), "--log: " + path + ": " + status.text());
    }
    has_header = true;
  }
  events::Event event;
  while (lines.next(line)) {
    if (lines.line_number() % kReportEvery == 0) {
      progress.report(lines.bytes_read(), lines.bytes_total());
    }
    if (csv.read_row(line, event)) {
      log.add(event);
    } else if (!is_blank(line)) {
      rejections.add(path, lines.line_number(), csv.why());
    }
  }
  return lines.status();
}

Status read_messages(LineSource& lines, const std::string& path, ImpressionLog& log,
                     Rejections& rejections, Progress& progress) {
  const auto decoder = events::make_json_event_decoder();
  events::Event event;
  std::string_view line;
  while (lines.next(line)) {
    if (lines.line_number() % kReportEvery == 0) {
      progress.report(lines.bytes_read(), lines.bytes_total());
    }
    if (is_blank(line)) continue;
    if (const auto rejected = decoder->decode_one(line, event)) {
      rejections.add(path, lines.line_number(), text_of(*rejected));
    } else {
      log.add(event);
    }
  }
  return lines.status();
}

}  // namespace

Status read_log_file(const std::string& path, const CsvLog::ColumnNames& columns,
                     ImpressionLog& log, Rejections& rejections, Progress& progress) {
  progress.begin("Reading " + path);
  auto opened = LineSource::open(path);
  if (!opened.ok()) return opened.status();
  LineSource& lines = *opened.value();
  const char first = lines.peek();
  if (!lines.status().ok()) return lines.status();
  return first == '{' ? read_messages(lines, path, log, rejections, progress)
                      : read_csv(lines, path, CsvLog(columns), log, rejections, progress);
}

Status read_topic(const KafkaSource& source, ImpressionLog& log, Rejections& rejections,
                  Progress& progress) {
  progress.begin("Reading topic " + source.topic);
  auto reader = kafka::RangeReader::open(source.connection, source.topic, source.answer_within);
  if (!reader.ok()) return reader.status();
  auto spans = reader.value()->whole_topic();
  if (!spans.ok()) return spans.status();
  std::uint64_t total = 0;
  for (const kafka::OffsetSpan& span : spans.value()) {
    total += static_cast<std::uint64_t>(span.to - span.from);
  }
  const auto decoder = events::make_json_event_decoder();
  std::uint64_t done = 0;
  return reader.value()->read(spans.value(), [&](const kafka::RangeMessage& message) {
    if (++done % kReportEvery == 0) progress.report(done, total);
    events::Event event;
    if (const auto rejected = decoder->decode_one(message.value, event)) {
      rejections.add(fmt::format("{}[{}]", source.topic, message.partition),
                     static_cast<std::size_t>(message.offset), text_of(*rejected));
    } else {
      log.add(event);
    }
  });
}

}  // namespace fcap::cli
