#include "updater/compaction/slot_listing.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "redis/redirects.h"

namespace fcap::updater {
namespace {

using redis::Reply;

// A slot with as many keys holds other programs' keys, or users without number.
constexpr std::size_t kKeysMax = 1'000'000;

}  // namespace

struct SlotListing::RunningListings {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t outstanding = 0;  // guarded by mutex
};

void SlotListing::append_query() {
  redis::append_command(
      wire, {"CLUSTER", "GETKEYSINSLOT", std::to_string(listed_slot), std::to_string(kKeysMax)});
}

void SlotListing::ask_owner(std::uint16_t listed, const std::string& probe) {
  listed_slot = listed;
  slot = listed;
  epoch.reset();
  wire.clear();
  redis::append_command(wire, {"PTTL", probe});
  append_query();
  redis::append_command(wire, {"PTTL", probe});
  command_count = 3;
  query_index_ = 1;
  state = State::kWhole;
}

void SlotListing::ask_other(std::uint16_t listed, std::uint16_t way, std::uint64_t connections) {
  listed_slot = listed;
  slot = way;
  epoch = connections;
  wire.clear();
  append_query();
  command_count = 1;
  query_index_ = 0;
  state = State::kPart;
}

void SlotListing::fail(std::string why) {
  if (std::exchange(failed_, true)) return;
  state = State::kFailed;
  text = std::move(why);
}

void SlotListing::take_keys(const Reply& reply) {
  if (reply.kind != Reply::Kind::kArray) {
    return fail(reply.kind == Reply::Kind::kError ? std::string(reply.text)
                                                  : "CLUSTER GETKEYSINSLOT gave no list");
  }
  if (reply.elements.size() >= kKeysMax) {
    return fail("it has " + std::to_string(kKeysMax) + " keys or more");
  }
  for (const Reply& key : reply.elements) keys.emplace_back(key.text);
}

void SlotListing::on_reply(std::uint32_t index, const Reply& reply) noexcept {
  if (index == query_index_) return take_keys(reply);
  if (reply.kind == Reply::Kind::kInteger) return;
  // Its node has no such key: nobody has, or the slot's keys are on their way to another node.
  if (redis::is_redirect(reply) && reply.text.starts_with("ASK ")) {
    if (failed_) return;
    state = State::kPart;
    text = reply.text;
  } else {
    fail(reply.kind == Reply::Kind::kError ? std::string(reply.text) : "PTTL gave no number");
  }
}

void SlotListing::on_done(redis::TransportCode code) noexcept {
  // Under the lock to the end: after it, this may be gone.
  const std::lock_guard lock(waiting_->mutex);
  if (code != redis::TransportCode::kOk) fail("its node does not answer");
  if (--waiting_->outstanding == 0) waiting_->changed.notify_all();
}

void list_slots(redis::Client& client, std::span<SlotListing* const> listings,
                std::chrono::milliseconds deadline) {
  SlotListing::RunningListings waiting;
  waiting.outstanding = listings.size();
  for (SlotListing* const listing : listings) {
    listing->waiting_ = &waiting;
    listing->failed_ = false;
    listing->deadline = std::chrono::steady_clock::now() + deadline;
    client.submit(*listing);
  }
  std::unique_lock lock(waiting.mutex);
  waiting.changed.wait(lock, [&waiting] { return waiting.outstanding == 0; });
}

}  // namespace fcap::updater
