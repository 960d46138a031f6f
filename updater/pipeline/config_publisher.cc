#include "updater/pipeline/config_publisher.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLookEvery{10};
// While a loss is stated, and after a failure.
constexpr std::chrono::milliseconds kLookSoon{1000};
constexpr std::chrono::seconds kCallTime{2};
// Longer than any retention. It is renewed every day, so the key expires only when no updater runs
// any more.
constexpr std::chrono::days kKeptFor{430};
constexpr std::chrono::hours kExtendEvery{24};

}  // namespace

// One operation. It keeps itself alive until it is complete.
class ConfigPublisher::ConfigOperation final : public StoreCompletion {
 public:
  static std::shared_ptr<ConfigOperation> make() {
    auto call = std::make_shared<ConfigOperation>();
    call->self_ = call;
    return call;
  }
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::shared_ptr<ConfigOperation> self = std::move(self_);
    code = outcome.code;
    record = outcome.record;
    text = outcome.text;
    ended.store(true, std::memory_order_release);
  }

  std::atomic<bool> ended{false};
  StoreCode code = StoreCode::kUnavailable;
  std::string record;
  std::string text;

 private:
  std::shared_ptr<ConfigOperation> self_;
};

ConfigPublisher::ConfigPublisher(Store& store, const redis::ConfigRecord& record, Reader reader,
                                 LogCallback log, StoreClock store_clock, Connection connection)
    : store_(&store),
      key_(redis::config_key(record.key_prefix)),
      topic_(std::move(reader.topic)),
      name_(redis::missing_before_name(reader.group_id, topic_)),
      text_(redis::encode_config(record)),
      retention_(record.retention),
      log_(std::move(log)),
      store_clock_(std::move(store_clock)),
      connection_(std::move(connection)) {
  note_connection();
}

ConfigPublisher::~ConfigPublisher() = default;

void ConfigPublisher::tick(Clock::time_point now, Instant wall_now) {
  now_ = now;
  wall_now_ = wall_now;
  ask_if_due();
  note_connection();
}

// Gaps and marks that are set before the next tick are known of the data behind this connection.
// write() is bound to it: a server that is connected to meanwhile may have lost more than they say,
// and a gap must not be called closed there.
void ConfigPublisher::note_connection() {
  if (connection_) known_of_ = connection_();
}

void ConfigPublisher::ask_if_due() {
  if (call_) {
    if (!call_->ended.load(std::memory_order_acquire)) return;
    const std::shared_ptr<ConfigOperation> ended = std::exchange(call_, nullptr);
    on_answer(*ended);
    if (call_) return;
  }
  if (now_ < look_at_) return;
  look_at_ = now_ + kLookEvery;
  writing_ = false;
  call_ = ConfigOperation::make();
  store_->get(key_, now_ + kCallTime, *call_);
}

void ConfigPublisher::set_open_gaps(OpenGaps gaps) {
  if (gaps == gaps_) return;
  gaps_ = std::move(gaps);
  look_at_ = {};
}

void ConfigPublisher::set_marks(MarkNews marks) {
  if (!marks.gone.empty()) loss_.lost(marks.gone);
  if (!marks.gone.empty() || marks.connections != marks_.connections) look_at_ = {};
  marks_ = std::move(marks);
}

std::string ConfigPublisher::trouble() const {
  const std::lock_guard lock(trouble_mutex_);
  return trouble_;
}

void ConfigPublisher::on_answer(const ConfigOperation& call) {
  // The next look finds the present value.
  const bool failed = call.code != StoreCode::kOk && call.code != StoreCode::kNotFound;
  if (failed) look_at_ = call.code == StoreCode::kConflict ? Clock::time_point{} : now_ + kLookSoon;
  if (failed) return;
  if (writing_) {
    if (loss_.pending()) look_at_ = {};  // holds_back() counts from that look on
    loss_.written(losses_written_);
    settled_ = true;
    extend_at_ = now_ + kExtendEvery;
    return;
  }
  if (call.code == StoreCode::kNotFound) {
    // Whoever has emptied Redis took the marks as well, those of partitions that nobody owns
    // included. In a cluster, what was stated of other shards is gone, too.
    loss_.look({}, name_, now_);
    loss_.lost(SlotSet::all());
    return write(nullptr, with_gaps(redis::with_created(text_, wall_now_), {}));
  }
  // However long it is: what many updaters state may be too long for readers.
  const auto found = redis::parse_long_config(call.record);
  if (found.status().code() == StatusCode::kRefused) {
    refused_ = Status::error(StatusCode::kRefused, key_ + ": " + found.status().text());
    return;
  }
  const redis::ConfigRecord record = found.ok() ? found.value() : redis::ConfigRecord{};
  const Missing& recorded = record.missing_before;
  const bool ours =
      found.ok() && redis::with_created(redis::with_missing_before(call.record, {}), {}) == text_;
  loss_.look(record, name_, now_);
  note_trouble(recorded);
  if (settled_) {
    if (!found.ok()) return;
    // Two updaters with different settings must not overwrite each other forever.
    const std::string text = with_gaps(call.record, recorded);
    const bool due = ours && now_ >= extend_at_;
    if (text != call.record || due) write(&call.record, text);
    return;
  }
  if (!ours && log_) {
    log_(LogLevel::kWarning, key_ + " holds " + call.record + " and is replaced by " + text_ +
                                 ": Checkers must have the same settings as this updater");
  }
  const Instant created = record.created == Instant{} ? wall_now_ : record.created;
  write(&call.record, with_gaps(redis::with_created(text_, created), recorded));
}

std::chrono::milliseconds ConfigPublisher::store_ahead() const {
  const auto ahead = store_clock_ ? store_clock_() : std::nullopt;
  return ahead.value_or(milliseconds{0});
}

void ConfigPublisher::note_trouble(const Missing& recorded) {
  std::string text;
  const auto entries = recorded.find(name_);
  if (entries != recorded.end() && LossStatement::stands(entries->second)) {
    look_at_ = std::min(look_at_, now_ + kLookSoon);
    std::string partitions;
    for (std::int32_t i = 0; i < marks_.partitions; ++i) {
      const std::string number = std::to_string(i);
      if (!entries->second.contains(number))
        partitions += (partitions.empty() ? "" : ", ") + number;
    }
    text = "Redis has lost data, and the marks of " + topic_ +
           (partitions.empty() ? "" : ", partitions " + partitions) +
           ", have not been compared since: no count of the users concerned is complete, and their "
           "hard calls are refused";
  }
  const std::lock_guard lock(trouble_mutex_);
  trouble_ = std::move(text);
}

// Replaces the recorded gaps of this updater's partitions by the present ones, and removes those
// that no window reaches any more. Statements about other partitions stay, even if no updater has
// them at present: the updater that takes one over knows whether its gap is still open.
ConfigPublisher::Missing ConfigPublisher::missing_now(Missing recorded, bool merged,
                                                      Slots slots) const {
  auto& own = recorded[name_];
  // `latest` is a whole second. Without the fraction that is added here, the statements about two
  // losses in one second would be equal, and an updater that has compared its marks after the first
  // would take its partitions out of the second as well.
  const auto in_second = wall_now_.time_since_epoch() % std::chrono::seconds{1};
  loss_.apply(own, std::max(marks_.latest, wall_now_) + in_second);
  if (auto events = gaps_.expired) {
    if (slots != Slots::kAll) events->slots = SlotSet::all();
    LossStatement::expire(own, *events);
  }
  std::string kept;  // the entry for all partitions, where `merged`
  for (const auto& [partition, found] : gaps_.missing_before) {
    std::string name = std::to_string(partition);
    const auto compared = marks_.compared.find(partition);
    if (loss_.holds_back(
            name_, own,
            compared == marks_.compared.end() ? Clock::time_point{} : compared->second)) {
      continue;
    }
    own.erase(name);
    if (!found) {
      if (LossStatement::stands(own)) own[name] = Instant{};
      continue;
    }
    redis::MissingEvents events = *found;
    if (slots != Slots::kAll) events.slots = SlotSet::all();
    if (merged && !kept.empty()) {
      // One statement for both partitions: it needs the later instant and the slots of both.
      const auto other = own.extract(kept);
      events.slots |= other.mapped().slots;
      if (other.mapped().before >= events.before) {
        events.before = other.mapped().before;
        name = kept;
      }
    }
    own[name] = std::move(events);
    kept = std::move(name);
  }
  if (marks_.partitions > 0) LossStatement::settle(own, marks_.partitions);
  // Judged by the earlier of the two clocks, so that no statement is removed too early.
  const Instant reached = wall_now_ + std::min(store_ahead(), milliseconds{0}) - retention_;
  for (auto& [name, partitions] : recorded) {
    const bool lost = LossStatement::stands(partitions);
    std::erase_if(partitions, [&](const auto& it) {
      return it.second.before < reached && !(lost && it.second.before == Instant{});
    });
    if (slots != Slots::kNone) continue;
    for (auto& [partition, events] : partitions) events.slots = SlotSet::all();
  }
  std::erase_if(recorded, [](const auto& it) { return it.second.empty(); });
  return recorded;
}

// Readers accept no more than kConfigBytesMax. A text that is longer is shortened in steps, each of
// which may only say that more is missing than is. The first steps leave out slots, so that
// statements are about more users. Others' slots go after this updater's own: otherwise two
// updaters would take turns forever, one leaving the other's slots out and the other putting them
// back. The last steps make one statement of those about this updater's partitions. They come last
// because it stands under one partition's name, and is lost when another updater takes that
// partition over.
std::string ConfigPublisher::with_gaps(const std::string& config, const Missing& recorded) const {
  std::string text;
  for (const bool merged : {false, true}) {
    for (const Slots slots : {Slots::kAll, Slots::kOfOthers, Slots::kNone}) {
      text = redis::with_missing_before(config, missing_now(recorded, merged, slots));
      if (text.size() <= redis::kConfigBytesMax) return text;
    }
  }
  return text;
}

void ConfigPublisher::write(const std::string* found, const std::string& text) {
  // The store compares the expiry with its own clock, which may be ahead of this one; without the
  // difference the key could expire at once.
  const Instant expire_at = wall_now_ + store_ahead() + kKeptFor;
  Store::CompareAndSet change{key_, std::nullopt, text, expire_at};
  if (found != nullptr) {
    change.expected = *found;
    // Another server may hold the same text and less data. The write of a text that was not there
    // is not bound: it says that all events may be missing, which is true of any server.
    change.connection_epoch = known_of_;
  }
  writing_ = true;
  losses_written_ = loss_.losses();
  call_ = ConfigOperation::make();
  store_->compare_and_set(change, now_ + kCallTime, *call_);
}

}  // namespace fcap::updater
