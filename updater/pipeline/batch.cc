#include "updater/pipeline/batch.h"

#include "updater/pipeline/store_failure.h"
#include "updater/process/invariant.h"

namespace fcap::updater {

void Batch::complete(std::size_t index, const StoreOutcome& outcome) noexcept {
  WriteSlot& slot = slots_[appended_[index]];
  slot.code = outcome.code;
  // If the record is gone, or was begun again since the append, an expiry alone is not enough.
  const bool has_bytes =
      outcome.length_bytes > 0 && !(slot.appended && outcome.length_bytes < slot.length_bytes);
  slot.done = outcome.code == StoreCode::kOk && has_bytes;
  slot.appended = !slot.done && has_bytes;
  slot.owes_expiry = !slot.done && (slot.appended || slot.owes_expiry);
  slot.length_bytes = outcome.length_bytes;
  slot.epoch = outcome.connection_epoch;
  slot.refusal = slot.code == StoreCode::kServerError ? refusal_in(outcome.text) : Refusal::kNone;
  if (!slot.done && !outcome.text.empty()) {
    const std::lock_guard lock(failure_mutex_);
    if (slot.refusal == Refusal::kOfType) refusal_of_type_.assign(outcome.text);
    if (slot.refusal == Refusal::kOfAccount) refusal_of_account_.assign(outcome.text);
    if (failure_text_.empty()) {
      failure_text_.assign(outcome.text);
      failed_write_ = appended_[index];
    }
  }
  one_ended();
}

Batch::Refusal Batch::refusal_in(std::string_view text) noexcept {
  const auto says = [text](std::string_view what) { return text.find(what) != text.npos; };
  if (text.starts_with("WRONGTYPE")) return Refusal::kOfType;
  if (says("string exceeds maximum allowed size")) return Refusal::kOfType;
  // The account may use the command, but not with this key.
  if (text.starts_with("NOPERM") && says("key")) return Refusal::kOfAccount;
  return Refusal::kNone;
}

void Batch::give_up_refused(bool one_key_only) {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    WriteSlot& slot = slots_[i];
    if (slot.done || slot.refusal == Refusal::kNone) continue;
    const bool of_type = slot.refusal == Refusal::kOfType;
    if (!of_type && !one_key_only) continue;
    slot.done = true;
    slot.refused = true;
    slot.length_bytes = 0;
    refused_.push_back({i, of_type ? refusal_of_type_ : refusal_of_account_});
  }
}

void Batch::one_ended() noexcept {
  // acq_rel: whoever sees zero also sees every slot's result.
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) listener_->round_over(*this);
}

void Batch::list_appends(const Round& round) {
  // Far enough ahead for the memory to answer, near enough to stay in the cache.
  constexpr std::size_t kAhead = 16;
  const bool first = attempts == 0;
  if (slots_.size() < writes.size()) slots_.resize(writes.size());
  appends_.clear();
  appended_.clear();
  failure_text_.clear();
  refusal_of_type_.clear();
  refusal_of_account_.clear();
  for (std::size_t i = 0; i < writes.size(); ++i) {
    WriteSlot& slot = slots_[i];
    if (first) slot = WriteSlot{};
    slot.done_earlier = slot.done;
    if (slot.done) continue;
    Store::Append& append = appends_.emplace_back();
    append.key = writes.key(i);
    // A record that has the bytes already does not get them again: only its expiry is set.
    slot.appended =
        first ? !found_there.empty() && found_there[i] : slot.appended && round.same_connection;
    append.bytes = slot.appended ? std::string_view{} : writes.bytes(i);
    append.expire_at = writes.expire_at(i) + round.expiry_ahead;
    must_hold(append.expire_at > Instant{}, "every key that is written has an expiry");
    appended_.push_back(static_cast<std::uint32_t>(i));
    slot.expected_bytes = 0;
    if (!first || round.known == nullptr) continue;
    if (i + kAhead < writes.size()) round.known->prefetch(writes.hash(i + kAhead));
    append.known_bytes = round.known->length(writes.hash(i), writes.expire_at(i));
    if (!append.known_bytes) continue;
    slot.expected_bytes = *append.known_bytes + append.bytes.size();
    round.known->will_be(writes.hash(i), slot.expected_bytes);
  }
}

void Batch::start_round(Store& store, const Round& round) {
  list_appends(round);
  ++attempts;
  // One more than there are, so that the round cannot end before all of it was started.
  outstanding_.store(appends_.size() + 1, std::memory_order_relaxed);
  if (!appends_.empty()) store.append_all(appends_, round.deadline, *this);
  one_ended();
}

void Batch::distrust_known() noexcept {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!slots_[i].done || !slots_[i].as_expected()) continue;
    slots_[i].done = false;
    slots_[i].code = StoreCode::kUnavailable;
  }
}

void Batch::learn(KnownRecords& known, std::chrono::milliseconds expiry_ahead) const noexcept {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    // What an earlier round had done was learned after that round, if it could be, and what came
    // out as expected was noted when it was sent.
    if (slots_[i].done_earlier || slots_[i].as_expected()) continue;
    known.learn(writes.hash(i), slots_[i].length_bytes, writes.expire_at(i) + expiry_ahead);
  }
}

void Batch::forget_undone(KnownRecords& known) const noexcept {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!slots_[i].done) known.forget(writes.hash(i));
  }
}

bool Batch::owes_expiry() const noexcept {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!slots_[i].done && slots_[i].owes_expiry) return true;
  }
  return false;
}

void Batch::close_round() noexcept {
  failed_writes_ = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (slots_[i].done) continue;
    ++failed_writes_;
    if (failure_text_.empty()) failed_write_ = i;
  }
  undone_ = failed_writes_;
}

std::string Batch::sample_failure() const {
  if (failed_writes_ == 0) return {};
  // Without the key: the log and /readyz name no user.
  return describe_failure(slots_[failed_write_].code, failure_text_);
}

std::size_t Batch::weight_bytes() const noexcept {
  return writes.total_bytes();
}

void BatchMessages::take(const events::Event& event, const kafka::PartitionOffset& at,
                         Coalescer& users) {
  if (users.add(event) == positions.size()) positions.push_back(at);
  if (event.kind == events::Event::Kind::kSeen) {
    ++events;
  } else {
    erasures.push_back({event.time, at.partition, at.offset});
  }
}

void BatchMessages::clear() noexcept {
  messages = 0;
  events = 0;
  erasures.clear();
  positions.clear();
}

void Batch::clear() noexcept {
  writes.clear();
  BatchMessages::clear();
  ranges.clear();
  refused_.clear();
  first_message_ms = -1;
  gap_ticket = 0;
  found_there.clear();
  attempts = 0;
  undone_ = 0;
  failed_writes_ = 0;
}

}  // namespace fcap::updater
