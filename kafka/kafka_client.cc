#include "kafka/kafka_client.h"

#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "base/thread.h"

namespace fcap::kafka {
namespace {

std::atomic<int> ending{0};  // clients that librdkafka has not ended yet

// What the thread that ends a client owns.
struct Ending {
  Ending(rd_kafka_t* client, std::shared_ptr<void> used) : handle(client), kept(std::move(used)) {
    ++ending;
  }
  ~Ending() {
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    kept.reset();
    --ending;
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  rd_kafka_t* const handle;
  std::shared_ptr<void> kept;
};

}  // namespace

Result<KafkaClient> KafkaClient::create(rd_kafka_type_t type, Ptr<rd_kafka_conf_t> conf,
                                        std::shared_ptr<void> kept) {
  char text[512] = {};
  rd_kafka_t* const handle = rd_kafka_new(type, conf.get(), text, sizeof text);
  if (handle == nullptr) {
    return Status::error(
        StatusCode::kInvalidArgument,
        fmt::format("kafka {}: {}", type == RD_KAFKA_PRODUCER ? "producer" : "consumer", text));
  }
  (void)conf.release();  // the client owns it now
  return KafkaClient(handle, std::move(kept));
}

KafkaClient::KafkaClient(rd_kafka_t* handle, std::shared_ptr<void> kept) noexcept
    : handle_(handle), kept_(std::move(kept)) {}

KafkaClient::KafkaClient(KafkaClient&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), kept_(std::move(other.kept_)) {}

KafkaClient& KafkaClient::operator=(KafkaClient&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(kept_, other.kept_);
  return *this;
}

KafkaClient::~KafkaClient() {
  end(kEndsWithin);
}

void KafkaClient::end(std::chrono::milliseconds patience) {
  if (handle_ == nullptr) return;
  auto* const ended_by_thread = new Ending(std::exchange(handle_, nullptr), std::move(kept_));
  // If there is no thread to wait for librdkafka, nobody does, and the client is left behind.
  const auto ended =
      base::start_detached("kafka-ends", [ended_by_thread] { delete ended_by_thread; });
  if (ended.ok()) ended.value().wait_for(patience);
}

bool KafkaClient::is_left_behind() noexcept {
  return ending > 0;
}

}  // namespace fcap::kafka
