#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/store.h>

#include "redis/client.h"

namespace fcap::redis {

class StorePools;

/// APPEND for some records, then PEXPIREAT for those whose expiry is not known to be late enough,
/// once the length after the APPEND has shown which these are. A record that did not exist before
/// gets NX, any other GT. GT returns 0 both when the expiry is later already and when there is
/// none; then NX follows. NX returns 0 when another writer has set one meanwhile; then GT follows
/// once more, so that the later of the two expiries remains.
///
/// Used again and again with its buffers: warm, it does not allocate.
class AppendsOperation final : public Request {
 public:
  /// With more, the first would wait for the last.
  static constexpr std::size_t kAppendsMax = 256;

  AppendsOperation(Client& client, StorePools& pools) : client_(client), pools_(pools) {}

  /// Empties it. Either `one` or `list` receives the outcomes.
  void begin(StoreCompletion* one, StoreListCompletion* list);
  void add(const Store::Append& append, std::size_t index);
  [[nodiscard]] bool full() const noexcept { return items_.size() >= kAppendsMax; }
  void start(std::uint16_t slot_of_all, Store::Deadline deadline_at);

  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

 private:
  /// The command that the next reply to an item is for.
  enum class Step : std::uint8_t {
    kAppend,
    kExpireLater,
    kExpireNew,
    kExpireAgain,
    kOver,
  };
  static constexpr std::size_t kNothing = SIZE_MAX;
  struct Item {
    std::size_t index;        // in the caller's list
    std::size_t known_bytes;  // before, if the expiry is known
    std::size_t appended_bytes;
    std::size_t length_bytes;  // afterwards
    std::int64_t expire_at_ms;
    std::uint32_t key_offset;  // in wire
    std::uint32_t key_bytes;
    Step step;
  };

  [[nodiscard]] std::string_view key_of(const Item& item) const noexcept {
    return std::string_view(wire).substr(item.key_offset, item.key_bytes);
  }
  void add_expire(std::string& to, Item& item, std::string_view key, std::string_view flag);
  [[nodiscard]] static Step after_append(const Item& item) noexcept;
  void on_item_reply(Item& item, const Reply& reply);
  void skip_over() noexcept;
  bool expire_the_rest();
  void complete(Item& item, const StoreOutcome& outcome) noexcept;

  Client& client_;
  StorePools& pools_;
  StoreCompletion* one_ = nullptr;
  StoreListCompletion* list_ = nullptr;
  std::vector<Item> items_;
  std::size_t at_ = 0;  // the item that the next reply is for
  std::string next_wire_;
};

}  // namespace fcap::redis
