#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fcap/time.h>

#include "events/event.h"

namespace fcap::events {

/// Why a message is not an event. The words of to_string() appear in the dead-letter topic and
/// metrics.
enum class Rejection : std::uint8_t {
  kNotJson,
  kNotAnObject,
  kMissingMember,
  kWrongType,
  kIdTooLong,
  kBadTimestamp,
  kUnknownType,
  kTooLarge,
  kInFuture,          ///< judged by the updater, which knows the time
  kSignatureMissing,  ///< these are judged by a SignatureCheck
  kSignatureMalformed,
  kSignatureUnknownKey,
  kSignatureForged,
  kSignatureForeign,
  kSignatureKeyNotInForce,
  kSignatureExpired,
  kRefused,  ///< Redis takes nothing for this user; judged by the updater, after it was tried
};
inline constexpr std::size_t kRejections = static_cast<std::size_t>(Rejection::kRefused) + 1;
[[nodiscard]] std::string_view to_string(Rejection reason) noexcept;

/// Why decode() rejected a message.
struct Rejected {
  Rejection reason = Rejection::kNotJson;
  std::string_view member = {};  ///< the member at fault, where one is
};

/// Looks up headers of a message. Whoever needs none pays nothing for them.
class MessageHeaders {
 public:
  /// The value of the last header with this name; empty for a null value, nullopt without such a
  /// header. Valid as long as the message.
  [[nodiscard]] virtual std::optional<std::string_view> find(const char* name) const noexcept = 0;

 protected:
  ~MessageHeaders() = default;
};

/// A message as it stands in its topic. One from a file has nothing but a value.
struct Message {
  template <typename Bytes>
  requires std::is_convertible_v<const Bytes&, std::string_view> Message(const Bytes& bytes)
  noexcept : value(bytes) {}  // NOLINT: often there is nothing more

  std::string_view value;
  std::string_view topic = {};
  std::optional<std::string_view> key = {};
  std::optional<Instant> timestamp = {};    ///< the broker's or the producer's, as the topic is set
  const MessageHeaders* headers = nullptr;  ///< null: it has none
};

enum class Decoded : std::uint8_t {
  kEvents,
  kRejected,
  /// Something is missing that is being fetched, such as a schema: the same message is to be asked
  /// for again in a while, and none behind it in its partition is to be taken before it.
  kNotYet,
};

/// Messages to events. An interface, so that other encodings can follow.
///
/// Not thread-safe; one decoder per thread. Any bytes are safe. Never blocks.
class EventDecoder {
 public:
  virtual ~EventDecoder() = default;
  /// kEvents: `events` holds what the message says, in its order: one event, several or none; valid
  /// until the next call and as long as the message. kRejected: `rejected` says why.
  virtual Decoded decode(const Message& message, std::vector<Event>& events,
                         Rejected& rejected) noexcept = 0;

  /// For readers of logs that hold one event per message: fills `event` with the first one and
  /// returns nullopt, or returns why the message holds no event.
  std::optional<Rejected> decode_one(std::string_view value, Event& event);

 private:
  std::vector<Event> decoded_;  // of decode_one()
};

/// {"user_id":"u123","campaign_id":"c456","timestamp":1700000000,"imp_id":"uuid"}; optional
/// creative_id, type ("impression" by default, "click", "viewable", "conversion", "erasure"),
/// event_id (by default imp_id). docs/events.md is the reference.
[[nodiscard]] std::unique_ptr<EventDecoder> make_json_event_decoder();

}  // namespace fcap::events
