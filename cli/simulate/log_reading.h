#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <fcap/status.h>

#include "cli/simulate/csv_log.h"
#include "cli/simulate/impression_log.h"
#include "cli/simulate/progress.h"
#include "kafka/conf.h"

namespace fcap::cli {

/// What could not be read of a log: counted, and the first few told.
struct Rejections {
  static constexpr std::size_t kToldMax = 10;
  struct Told {
    std::string source;
    std::size_t line = 0;  ///< from 1; of Kafka, the offset
    std::string reason;
  };
  std::size_t count = 0;
  std::vector<Told> first;

  void add(const std::string& source, std::size_t line, std::string reason) {
    ++count;
    if (first.size() < kToldMax) first.push_back({source, line, std::move(reason)});
  }
};

/// Adds a file's events to the log: event messages, one per line, where it begins with "{", else
/// CSV; gzip or plain. Lines that are no events are added to `rejections` and do not stop the rest.
/// `columns`: what CSV calls its columns.
Status read_log_file(const std::string& path, const CsvLog::ColumnNames& columns,
                     ImpressionLog& log, Rejections& rejections, Progress& progress);

struct KafkaSource {
  kafka::ConnectionOptions connection;
  std::string topic;
  std::chrono::milliseconds answer_within;
};

/// Adds all messages of a topic, from the first there is to the end as it is now.
Status read_topic(const KafkaSource& source, ImpressionLog& log, Rejections& rejections,
                  Progress& progress);

}  // namespace fcap::cli
