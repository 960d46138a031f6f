#include "updater/replay/canary.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <thread>
#include <utility>

#include "redis/blocking_call.h"
#include "redis/slot_tags.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {
namespace {

constexpr int kPlantAttempts = 20;
constexpr std::chrono::milliseconds kBetweenAttempts{250};
constexpr std::string_view kCanaryLifeMs = "2764800000";  // 32 days: longer than any replay

}  // namespace

Canary::Canary(std::shared_ptr<redis::Client> client, const ReplayOptions& replay)
    : client_(std::move(client)),
      key_prefix_(replay.key_prefix),
      whose_(replay.consumer.group_id + ":" + replay.consumer.topic + ":replay"),
      value_(std::to_string(std::random_device{}())),
      deadline_(replay.write.deadline) {}

Canary::~Canary() {
  if (planted_) remove();
}

void Canary::remove() {
  std::vector<redis::BlockingCall> calls;
  for (const CanaryKey& place : places_) calls.push_back({{"DEL", place.key}, place.key});
  redis::call_and_wait(*client_, calls, deadline_, [](std::size_t, const redis::Reply&) {});
}

std::string Canary::key_of(std::string_view tag) const {
  return tagged_mark_key(key_prefix_, tag, whose_);
}

std::vector<Canary::CanaryKey> Canary::places_now() const {
  std::vector<CanaryKey> places;
  if (!client_->is_cluster()) {
    places.push_back({.shard = {}, .key = key_of("0"), .epoch = client_->connection_epoch()});
  }
  for (redis::ClusterShard& shard : client_->shards()) {
    // The tools that move slots begin with a shard's first ones.
    places.push_back({.shard = std::move(shard.id),
                      .key = key_of(redis::tag_of_slot(shard.slots.back().last)),
                      .epoch = shard.connection_epoch});
  }
  return places;
}

bool Canary::plant() {
  // Some may be in shards that are gone, or in slots that have other owners by now.
  if (planted_) remove();
  planted_ = false;
  for (int i = 0; i < kPlantAttempts && !planted_; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBetweenAttempts);
    places_ = places_now();
    // The keys count only if the connections before the writing are still the same after it.
    planted_ = !places_.empty() && write() && same_connections() && same_shards();
  }
  return planted_;
}

bool Canary::same_shards() const {
  return std::ranges::equal(places_now(), places_, {}, &CanaryKey::shard, &CanaryKey::shard);
}

bool Canary::same_connections() const {
  return std::ranges::all_of(places_, [this](const CanaryKey& place) {
    return place.epoch == client_->connection_epoch(redis::slot_of(place.key));
  });
}

bool Canary::write() {
  std::vector<redis::BlockingCall> calls;
  for (const CanaryKey& place : places_) {
    calls.push_back({{"SET", place.key, value_, "PX", kCanaryLifeMs}, place.key});
  }
  std::size_t taken = 0;
  redis::call_and_wait(*client_, calls, deadline_, [&](std::size_t, const redis::Reply& reply) {
    const bool is_taken = reply.kind == redis::Reply::Kind::kStatus;
    taken += is_taken ? 1 : 0;
    if (!is_taken) why_.assign(reply.text);
  });
  return taken == places_.size();
}

bool Canary::alive() {
  std::vector<redis::BlockingCall> calls;
  for (const CanaryKey& place : places_) calls.push_back({{"GET", place.key}, place.key});
  std::size_t found = 0;
  // If no answer comes and the connection is still the same one, the key may well be there: it is
  // asked for again.
  for (int i = 0; i < kPlantAttempts; ++i) {
    found = 0;
    const auto code = redis::call_and_wait(
        *client_, calls, deadline_, [&](std::size_t, const redis::Reply& reply) {
          const bool is_there = reply.kind == redis::Reply::Kind::kString && reply.text == value_;
          found += is_there ? 1 : 0;
        });
    if (code == redis::TransportCode::kOk || !same_connections()) break;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return planted_ && found == places_.size() && same_connections() && same_shards();
}

}  // namespace fcap::updater
