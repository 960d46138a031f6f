#include "updater/pipeline/batch.h"

namespace fcap::updater {

void Batch::WriteSlot::complete(const StoreOutcome& outcome) noexcept {
  code = outcome.code;
  done = outcome.code == StoreCode::kOk;
  if (done) length_bytes = outcome.length_bytes;
  batch->one_ended();
}

void Batch::LetterSlot::delivered(bool ok) noexcept {
  done = ok;
  batch->one_ended();
}

void Batch::one_ended() noexcept {
  // acq_rel: whoever sees zero also sees every slot's result.
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) listener_->round_over(*this);
}

void Batch::start_round(Store& store, DeadLetterSink* dead_letters, Store::Deadline deadline) {
  if (slots_.size() < writes.size()) slots_.resize(writes.size());
  std::size_t to_start = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (attempts == 0) slots_[i] = WriteSlot{};
    slots_[i].batch = this;
    if (!slots_[i].done) ++to_start;
  }
  for (const LetterSlot& slot : dead_letters_) {
    if (!slot.done) ++to_start;
  }
  ++attempts;
  // One more than there are: the round cannot end before all of it was started.
  outstanding_.store(to_start + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (slots_[i].done) continue;
    store.append(writes.key(i), writes.bytes(i), writes.expire_at(i), deadline, slots_[i]);
  }
  for (LetterSlot& slot : dead_letters_) {
    if (slot.done) continue;
    if (dead_letters != nullptr) {
      dead_letters->send(slot.letter, slot);
    } else {
      slot.delivered(true);
    }
  }
  one_ended();
}

void Batch::close_round() noexcept {
  failed_writes_ = 0;
  failed_letters_ = 0;
  sample_failure_ = StoreCode::kOk;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (slots_[i].done) continue;
    ++failed_writes_;
    sample_failure_ = slots_[i].code;
  }
  for (const LetterSlot& slot : dead_letters_) {
    if (!slot.done) ++failed_letters_;
  }
  undone_ = failed_writes_ + failed_letters_;
}

std::size_t Batch::weight_bytes() const noexcept {
  std::size_t bytes = writes.total_bytes();
  for (const LetterSlot& slot : dead_letters_) bytes += slot.letter.payload.size();
  return bytes;
}

void Batch::clear() noexcept {
  writes.clear();
  ranges.clear();
  dead_letters_.clear();
  events = 0;
  erasures.clear();
  messages = 0;
  first_message_ms = -1;
  attempts = 0;
  undone_ = 0;
  failed_writes_ = 0;
  failed_letters_ = 0;
}

}  // namespace fcap::updater
