#include "updater/pipeline/dead_letter_producer.h"

#include <optional>
#include <utility>
#include <vector>

namespace fcap::updater {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

Headers headers_of(const DeadLetter& letter) {
  Headers headers = letter.headers;
  headers.emplace_back("fcap.reason", events::to_string(letter.reason));
  if (!letter.member.empty()) headers.emplace_back("fcap.member", letter.member);
  headers.emplace_back("fcap.topic", letter.topic);
  headers.emplace_back("fcap.partition", std::to_string(letter.partition));
  headers.emplace_back("fcap.offset", std::to_string(letter.offset));
  if (letter.timestamp_ms >= 0) {
    headers.emplace_back("fcap.timestamp_ms", std::to_string(letter.timestamp_ms));
  }
  if (letter.bytes_before_cut > 0) {
    headers.emplace_back("fcap.truncated", "true");
    headers.emplace_back("fcap.bytes", std::to_string(letter.bytes_before_cut));
  }
  return headers;
}

}  // namespace

Result<std::unique_ptr<DeadLetterProducer>> DeadLetterProducer::create(
    const kafka::ConnectionOptions& connection, std::string topic, LogCallback log) {
  auto producer = kafka::Producer::create(connection, std::move(topic), std::move(log));
  if (!producer.ok()) return producer.status();
  return std::unique_ptr<DeadLetterProducer>(new DeadLetterProducer(std::move(producer).value()));
}

void DeadLetterProducer::send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept {
  const Headers headers = headers_of(letter);
  producer_->send(
      {.key = letter.has_key ? std::optional<std::string_view>(letter.key) : std::nullopt,
       .value = letter.has_payload ? std::optional<std::string_view>(letter.payload) : std::nullopt,
       .headers = headers},
      done);
}

}  // namespace fcap::updater
