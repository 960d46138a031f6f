#include "updater/pipeline/gap_reader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/thread.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kGapAnswer{5};         // for a question about a partition's ends
constexpr std::chrono::milliseconds kGapMessage{50};  // how often it looks for new requests
constexpr int kNicer = 10;
constexpr std::size_t kChunkMessages = 250;  // a step of the filler, with its writes: a millisecond
constexpr std::size_t kQueuedMessages = 4'000;
constexpr std::size_t kQueuedBytes = std::size_t{8} << 20U;
constexpr std::chrono::seconds kReaderEndsWithin{1};

using kafka::MessagePtr;
using Polled = kafka::GrouplessConsumer::Polled;

// Lowers the priority of the calling thread and of the threads that it starts from now on: on a
// busy machine, live messages go first.
void lower_priority() noexcept {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) (void)::setpriority(PRIO_PROCESS, 0, nice + kNicer);
}

}  // namespace

// What the reader and its thread share.
struct GapReader::State {
  explicit State(Options o) : options(std::move(o)) {}

  struct ReadStretch {
    std::uint64_t ticket = 0;
    std::int64_t next = 0;
    std::int64_t to = 0;
  };
  using Stretches = std::map<std::int32_t, ReadStretch>;

  void run();
  // False when there can be none now.
  bool make_consumer();
  void fail_all(const std::string& why);
  void assign();
  void read_some();
  void take_message(Polled polled, Chunk& chunk, std::vector<MessagePtr>& kept);
  void find_beginning(std::int32_t partition, ReadStretch& stretch, Chunk& chunk);
  void hand_over(std::map<std::int32_t, Chunk>&& read);

  const Options options;
  // The thread's; null until it is needed.
  std::unique_ptr<kafka::GrouplessConsumer> consumer;
  Stretches reading;  // the thread's: what is assigned, and how far it has been read

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;     // guarded by mutex, as is what follows
  Stretches wanted;      // what is to be read; those that have ended are gone
  bool renewed = false;  // `wanted` has other stretches than the thread knows
  std::deque<Chunk> chunks;
  std::size_t queued_messages = 0;
  std::size_t queued_bytes = 0;
};

std::optional<GapLog::Chunk> take_part(GapLog::Chunk& chunk, std::size_t messages_max) {
  if (chunk.messages.size() <= messages_max) return std::nullopt;
  const auto behind = chunk.messages.begin() + static_cast<std::ptrdiff_t>(messages_max);
  GapLog::Chunk part{.ticket = chunk.ticket, .owner = chunk.owner};
  part.messages.assign(chunk.messages.begin(), behind);
  chunk.messages.erase(chunk.messages.begin(), behind);
  return part;
}

Result<std::unique_ptr<GapReader>> GapReader::create(Options options) {
  auto state = std::make_shared<State>(std::move(options));
  auto ended = base::start_detached("fcap-gaps", [state] {
    lower_priority();
    state->run();
    state->consumer.reset();
  });
  if (!ended.ok()) return ended.status();
  return std::unique_ptr<GapReader>(new GapReader(std::move(state), std::move(ended).value()));
}

GapReader::~GapReader() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    // Kafka's messages must not outlive the client.
    state_->chunks.clear();
  }
  state_->changed.notify_all();
  (void)ended_.wait_for(kReaderEndsWithin);
}

void GapReader::read(std::uint64_t ticket, std::int32_t partition, std::int64_t from,
                     std::int64_t to) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->wanted[partition] = {ticket, from, to};
    state_->renewed = true;
  }
  state_->changed.notify_all();
}

void GapReader::stop(std::int32_t partition) {
  const std::lock_guard lock(state_->mutex);
  if (state_->wanted.erase(partition) > 0) state_->renewed = true;
}

std::optional<GapLog::Chunk> GapReader::next_chunk(std::size_t messages_max) {
  std::optional<Chunk> chunk;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->chunks.empty()) return std::nullopt;
    chunk = take_part(state_->chunks.front(), messages_max);
    if (!chunk) {
      chunk = std::move(state_->chunks.front());
      state_->chunks.pop_front();
    }
    state_->queued_messages -= chunk->messages.size();
    for (const GapMessage& message : chunk->messages) {
      state_->queued_bytes -= message.what.payload.size();
    }
  }
  state_->changed.notify_all();
  return chunk;
}

void GapReader::State::run() {
  while (true) {
    bool renew = false;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] {
        const bool room = queued_messages < kQueuedMessages && queued_bytes < kQueuedBytes;
        return stop || renewed || (!wanted.empty() && room);
      });
      if (stop) return;
      renew = std::exchange(renewed, false);
      if (renew) {
        // Stretches that are still wanted continue from where they are.
        Stretches now = wanted;
        for (auto& [partition, stretch] : now) {
          const auto old = reading.find(partition);
          if (old != reading.end() && old->second.ticket == stretch.ticket) stretch = old->second;
        }
        reading = std::move(now);
      }
    }
    if (reading.empty() && !consumer) continue;
    if (!consumer && !make_consumer()) continue;
    if (renew) assign();
    if (!reading.empty()) read_some();
  }
}

bool GapReader::State::make_consumer() {
  kafka::GrouplessConsumer::Options made_with = options;
  made_with.defaults = {
      // As for the consumer in the group: bytes, not messages, limit fetching.
      {"queued.min.messages", "1000000"},   {"queued.max.messages.kbytes", "16384"},
      {"fetch.wait.max.ms", "20"},          {"fetch.error.backoff.ms", "100"},
      {"reconnect.backoff.max.ms", "2000"},
  };
  auto made = kafka::GrouplessConsumer::create(std::move(made_with));
  if (!made.ok()) {
    fail_all(made.status().text());
    return false;
  }
  consumer = std::move(made).value();
  return true;
}

void GapReader::State::fail_all(const std::string& why) {
  std::map<std::int32_t, Chunk> failed;
  for (const auto& [partition, stretch] : reading) {
    failed[partition].ticket = stretch.ticket;
    failed[partition].failure = why;
  }
  hand_over(std::move(failed));
}

void GapReader::State::assign() {
  std::vector<kafka::PartitionOffset> from;
  for (const auto& [partition, stretch] : reading) from.push_back({partition, stretch.next});
  const Status assigned = consumer->assign(from);
  if (!assigned.ok()) fail_all(assigned.text());
}

void GapReader::State::read_some() {
  std::map<std::int32_t, Chunk> read;
  std::map<std::int32_t, std::shared_ptr<std::vector<MessagePtr>>> kept;
  std::chrono::milliseconds wait = kGapMessage;
  for (std::size_t n = 0; n < kChunkMessages; ++n) {
    Polled polled = consumer->poll(std::exchange(wait, std::chrono::milliseconds::zero()));
    if (polled.is == Polled::PolledKind::kNothing) break;
    const auto stretch = reading.find(polled.partition);
    // An error without a partition passes, or ends the consumer in the group too.
    if (stretch == reading.end()) continue;
    Chunk& chunk = read[polled.partition];
    chunk.ticket = stretch->second.ticket;
    if (chunk.end || !chunk.failure.empty()) continue;
    auto& owned = kept[polled.partition];
    if (!owned) owned = std::make_shared<std::vector<MessagePtr>>();
    chunk.owner = owned;
    take_message(std::move(polled), chunk, *owned);
  }
  hand_over(std::move(read));
}

void GapReader::State::take_message(Polled polled, Chunk& chunk, std::vector<MessagePtr>& kept) {
  ReadStretch& stretch = reading.at(polled.partition);
  switch (polled.is) {
    case Polled::PolledKind::kMessage:
      break;
    case Polled::PolledKind::kEnd:
      // The last offsets of a stretch may not exist (compaction, transaction markers).
      chunk.end = polled.offset >= stretch.to;
      if (!chunk.end) chunk.failure = fmt::format("the log ends at {}", polled.offset);
      return;
    case Polled::PolledKind::kOutOfRange:
      return find_beginning(polled.partition, stretch, chunk);
    case Polled::PolledKind::kError:
    case Polled::PolledKind::kNothing:
      chunk.failure = polled.error.text();
      return;
  }
  if (polled.offset < stretch.next) return;
  if (polled.offset >= stretch.to) {
    chunk.end = true;
    return;
  }
  stretch.next = polled.offset + 1;
  chunk.end = stretch.next >= stretch.to;
  chunk.messages.push_back({delivered_from(*polled.message), polled.message.get()});
  kept.push_back(std::move(polled.message));
}

void GapReader::State::find_beginning(std::int32_t partition, ReadStretch& stretch, Chunk& chunk) {
  const auto marks = consumer->watermarks(partition, kGapAnswer);
  if (!marks.ok()) {
    chunk.failure = marks.status().text();
    return;
  }
  const auto [low, high] = marks.value();
  if (low <= stretch.next) {
    chunk.failure =
        fmt::format("offset {} does not exist: the log has {} to {}", stretch.next, low, high);
  } else {
    stretch.next = low;
    chunk.log_start = low;
    chunk.end = low >= stretch.to;
    const std::lock_guard lock(mutex);
    renewed = true;
  }
}

void GapReader::State::hand_over(std::map<std::int32_t, Chunk>&& read) {
  const std::lock_guard lock(mutex);
  for (auto& [partition, chunk] : read) {
    const auto want = wanted.find(partition);
    // The chunk is no longer wanted.
    if (stop || want == wanted.end() || want->second.ticket != chunk.ticket) continue;
    if (chunk.end || !chunk.failure.empty()) {
      wanted.erase(want);
      renewed = true;
    }
    queued_messages += chunk.messages.size();
    for (const GapMessage& message : chunk.messages) queued_bytes += message.what.payload.size();
    chunks.push_back(std::move(chunk));
  }
}

}  // namespace fcap::updater
