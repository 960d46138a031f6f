#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "redis/client.h"

namespace fcap::updater {

/// One node's list of the keys that it has in a slot, whether it serves the slot or not.
class SlotListing final : public redis::Request {
 public:
  /// What it has shown.
  enum class State : std::uint8_t {
    kFailed,  ///< nothing; `text` says why
    kWhole,   ///< all keys of the slot
    kPart,    ///< the others are elsewhere; `text` is the redirect there
  };

  /// Asks the node that serves the slot. `probe` is a key of the slot that never exists.
  void ask_owner(std::uint16_t listed, const std::string& probe);
  /// Asks the node that serves `way` on the connections of that epoch; leads to kPart or kFailed.
  void ask_other(std::uint16_t listed, std::uint16_t way, std::uint64_t connections);

  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override;
  void on_done(redis::TransportCode code) noexcept override;

  State state = State::kFailed;
  std::string text;
  std::vector<std::string> keys;  ///< of the whole listing: each query adds to them
  std::uint16_t listed_slot = 0;

 private:
  friend void list_slots(redis::Client& client, std::span<SlotListing* const> listings,
                         std::chrono::milliseconds deadline);
  struct RunningListings;

  void append_query();
  void take_keys(const redis::Reply& reply);
  void fail(std::string why);

  std::uint32_t query_index_ = 0;
  bool failed_ = false;
  RunningListings* waiting_ = nullptr;
};

/// Sends what they ask, and waits for all answers.
void list_slots(redis::Client& client, std::span<SlotListing* const> listings,
                std::chrono::milliseconds deadline);

}  // namespace fcap::updater
