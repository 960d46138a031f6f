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
/// In a cluster, where a key may have moved between two commands, and without its latest bytes if
/// its master died, PEXPIRETIME takes the place of that last GT: if the record is not there, or if
/// a command was redirected, its append is repeated on its own. A record that has an event twice
/// means what it means with it once.
///
/// Used again and again with its buffers: warm, it does not allocate.
class AppendsOperation final : public Request {
 public:
  /// With more, the first would wait for the last.
  static constexpr std::size_t kAppendsMax = 256;

  AppendsOperation(Client& client, StorePools& pools) : client_(client), pools_(pools) {}

  /// Empties it. Either `one` or `list` receives the outcomes.
  void begin(StoreCompletion* one, StoreListCompletion* list);
  /// Throws std::bad_alloc; then it has what it had, and must not be started.
  void add(const Store::Append& append, std::size_t index);
  /// One append, alone, with PEXPIREAT NX in the same write. Throws std::bad_alloc.
  void add_note(const Store::Append& append);
  [[nodiscard]] bool full() const noexcept { return items_.size() >= kAppendsMax; }
  /// `slot_of_all`: that of one of them; the others' go the same way.
  void start(std::uint16_t slot_of_all, Store::Deadline deadline_at);

  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  /// Also called, with kOverloaded, for one that cannot be started.
  void on_done(TransportCode code) noexcept override;

 private:
  /// The command that the next reply to an item is for.
  enum class AppendStep : std::uint8_t {
    kAppend,
    kExpireLater,
    kExpireNew,
    kExpireAgain,
    kCheckExpiry,
    kOver,
  };
  static constexpr std::size_t kNothing = SIZE_MAX;
  struct AppendItem {
    std::size_t index;        // in the caller's list
    std::size_t known_bytes;  // before, if the expiry is known
    std::size_t appended_bytes;
    std::size_t length_bytes;  // afterwards
    std::int64_t expire_at_ms;
    std::uint64_t epoch;       // StoreOutcome::connection_epoch
    std::uint32_t key_offset;  // in the wire of the appends
    std::uint32_t key_bytes;
    AppendStep step;
  };

  void on_note_reply(AppendItem& item, const Reply& reply);
  void refuse(AppendItem& item, std::string_view error) noexcept;
  [[nodiscard]] std::string_view key_of(const AppendItem& item) const noexcept;
  [[nodiscard]] std::string_view bytes_of(const AppendItem& item) const noexcept;
  void add_next(const AppendItem& item);
  [[nodiscard]] static AppendStep after_append(const AppendItem& item) noexcept;
  void on_item_reply(AppendItem& item, const Reply& reply);
  void on_expiry(AppendItem& item, std::int64_t expire_at_ms);
  void repeat(AppendItem& item);
  void skip_over() noexcept;
  bool expire_the_rest();
  void complete(AppendItem& item, const StoreOutcome& outcome) noexcept;

  Client& client_;
  StorePools& pools_;
  StoreCompletion* one_ = nullptr;
  StoreListCompletion* list_ = nullptr;
  std::vector<AppendItem> items_;
  std::size_t at_ = 0;  // the item that the next reply is for
  bool appended_ = false;
  bool is_note_ = false;
  std::string appends_;  // the wire of the appends, once they have been answered
  int repeats_ = 0;
};

}  // namespace fcap::redis
