#include "redis/appends_operation.h"

#include <charconv>

#include "redis/command.h"
#include "redis/redirects.h"
#include "redis/store_operations.h"

namespace fcap::redis {
namespace {

// How often one append is repeated because its record was moved.
constexpr int kRepeatsMax = 3;

}  // namespace

void AppendsOperation::begin(StoreCompletion* one, StoreListCompletion* list) {
  one_ = one;
  list_ = list;
  patient = list != nullptr;
  items_.clear();
  at_ = 0;
  appended_ = false;
  is_note_ = false;
  repeats_ = 0;
  wire.clear();
  command_count = 0;
}

void AppendsOperation::add(const Store::Append& append, std::size_t index) {
  append_word_count(wire, 3);
  append_word(wire, "APPEND");
  append_word(wire, append.key);
  const std::size_t key_offset = wire.size() - append.key.size() - 2;
  append_word(wire, append.bytes);
  items_.push_back({.index = index,
                    .known_bytes = append.known_bytes.value_or(kNothing),
                    .appended_bytes = append.bytes.size(),
                    .length_bytes = 0,
                    .expire_at_ms = to_ms(append.expire_at),
                    .epoch = 0,
                    .key_offset = static_cast<std::uint32_t>(key_offset),
                    .key_bytes = static_cast<std::uint32_t>(append.key.size()),
                    .step = AppendStep::kAppend});
  ++command_count;
}

void AppendsOperation::add_note(const Store::Append& append) {
  is_note_ = true;
  add(append, 0);
  const AppendItem& item = items_.back();
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, item.expire_at_ms).ptr;
  append_command(wire,
                 {"PEXPIREAT", append.key, {text, static_cast<std::size_t>(end - text)}, "NX"});
  ++command_count;
}

std::string_view AppendsOperation::key_of(const AppendItem& item) const noexcept {
  return std::string_view(appended_ ? appends_ : wire).substr(item.key_offset, item.key_bytes);
}

// What stands behind the key: "\r\n$", how many bytes there are, "\r\n", and the bytes.
std::string_view AppendsOperation::bytes_of(const AppendItem& item) const noexcept {
  const std::string_view all = appended_ ? appends_ : wire;
  const auto count_at = item.key_offset + item.key_bytes + 2;
  return all.substr(all.find('\n', count_at) + 1, item.appended_bytes);
}

void AppendsOperation::add_next(const AppendItem& item) {
  ++command_count;
  if (item.step == AppendStep::kCheckExpiry) {
    append_command(wire, {"PEXPIRETIME", key_of(item)});
    return;
  }
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, item.expire_at_ms).ptr;
  append_command(wire, {"PEXPIREAT",
                        key_of(item),
                        {text, static_cast<std::size_t>(end - text)},
                        item.step == AppendStep::kExpireNew ? "NX" : "GT"});
}

void AppendsOperation::start(std::uint16_t slot_of_all, Store::Deadline deadline_at) {
  slot = slot_of_all;
  deadline = deadline_at;
  client_.submit(*this);
}

void AppendsOperation::on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept {
  if (is_note_) return on_note_reply(items_.front(), reply);
  on_item_reply(items_[at_], reply);
  ++at_;
  skip_over();
}

void AppendsOperation::skip_over() noexcept {
  while (at_ < items_.size() && items_[at_].step == AppendStep::kOver) ++at_;
}

AppendsOperation::AppendStep AppendsOperation::after_append(const AppendItem& item) noexcept {
  if (item.length_bytes == item.appended_bytes) return AppendStep::kExpireNew;
  // The record has grown by nothing but this append, so it is the known one.
  const bool as_known = item.length_bytes == item.known_bytes + item.appended_bytes;
  return item.known_bytes != kNothing && as_known ? AppendStep::kOver : AppendStep::kExpireLater;
}

void AppendsOperation::on_item_reply(AppendItem& item, const Reply& reply) {
  if (client_.is_cluster() && is_redirect(reply)) return repeat(item);
  if (reply.kind == Reply::Kind::kError) return refuse(item, reply.text);
  if (reply.kind != Reply::Kind::kInteger) {
    misanswered = true;
    return;
  }
  const bool expiry_set = reply.integer == 1;
  switch (item.step) {
    case AppendStep::kAppend:
      item.length_bytes = static_cast<std::size_t>(reply.integer);
      item.epoch = answered_epoch;
      item.step = after_append(item);
      break;
    case AppendStep::kExpireLater:
      item.step = expiry_set ? AppendStep::kOver : AppendStep::kExpireNew;
      break;
    case AppendStep::kExpireNew:
      item.step = expiry_set             ? AppendStep::kOver
                  : client_.is_cluster() ? AppendStep::kCheckExpiry
                                         : AppendStep::kExpireAgain;
      break;
    case AppendStep::kCheckExpiry:
      return on_expiry(item, reply.integer);
    case AppendStep::kExpireAgain:
    case AppendStep::kOver:
      item.step = AppendStep::kOver;
      break;
  }
  if (item.step == AppendStep::kOver) {
    complete(item, {.code = StoreCode::kOk,
                    .length_bytes = item.length_bytes,
                    .connection_epoch = item.epoch});
  }
}

// Both replies are to the one item. That the record has an expiry already is as good as setting it.
void AppendsOperation::on_note_reply(AppendItem& item, const Reply& reply) {
  if (item.step == AppendStep::kOver) return;
  if (client_.is_cluster() && is_redirect(reply)) return repeat(item);
  if (reply.kind == Reply::Kind::kError) return refuse(item, reply.text);
  if (reply.kind != Reply::Kind::kInteger) {
    misanswered = true;
  } else if (item.step == AppendStep::kAppend) {
    item.length_bytes = static_cast<std::size_t>(reply.integer);
    item.step = AppendStep::kExpireNew;
  } else {
    item.step = AppendStep::kOver;
    complete(item, {.code = StoreCode::kOk, .length_bytes = item.length_bytes});
  }
}

void AppendsOperation::refuse(AppendItem& item, std::string_view error) noexcept {
  item.step = AppendStep::kOver;
  complete(item,
           {.code = StoreCode::kServerError, .length_bytes = item.length_bytes, .text = error});
}

// The record's expiry, which was there already. PEXPIRETIME gives -2 if there is no record, and -1
// if it has no expiry.
void AppendsOperation::on_expiry(AppendItem& item, std::int64_t expire_at_ms) {
  if (expire_at_ms == -2) return repeat(item);
  if (expire_at_ms < item.expire_at_ms) {
    item.step = expire_at_ms == -1 ? AppendStep::kExpireNew : AppendStep::kExpireAgain;
    return;
  }
  item.step = AppendStep::kOver;
  complete(
      item,
      {.code = StoreCode::kOk, .length_bytes = item.length_bytes, .connection_epoch = item.epoch});
}

// Appends once more, by an operation of its own, whose commands are redirected one by one.
void AppendsOperation::repeat(AppendItem& item) {
  item.step = AppendStep::kOver;
  if (repeats_ == kRepeatsMax) return complete(item, {.code = StoreCode::kUnavailable});
  AppendsOperation* operation = pools_.appends.take();
  if (operation == nullptr) operation = new AppendsOperation(client_, pools_);
  operation->begin(one_, list_);
  operation->patient = patient;
  operation->repeats_ = repeats_ + 1;
  operation->add({.key = key_of(item),
                  .bytes = bytes_of(item),
                  .expire_at = instant_from_ms(item.expire_at_ms)},
                 item.index);
  operation->start(slot_of(key_of(item)), deadline);
}

bool AppendsOperation::expire_the_rest() {
  if (!appended_) appends_.swap(wire);
  appended_ = true;
  wire.clear();
  command_count = 0;
  for (const AppendItem& item : items_) {
    if (item.step != AppendStep::kOver) add_next(item);
  }
  if (command_count == 0) return false;
  at_ = 0;
  skip_over();
  client_.submit(*this);
  return true;
}

void AppendsOperation::on_done(TransportCode code) noexcept {
  if (code == TransportCode::kOk && expire_the_rest()) return;
  if (code != TransportCode::kOk) {
    StoreOutcome outcome{.code = store_code(code)};
    std::string why;
    try {
      if (code == TransportCode::kUnavailable) why = client_.last_error();
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a text
    }
    outcome.text = why;
    for (AppendItem& item : items_) {
      if (item.step == AppendStep::kOver) continue;
      outcome.length_bytes = item.length_bytes;
      complete(item, outcome);
    }
  }
  pools_.appends.give(this);
}

void AppendsOperation::complete(AppendItem& item, const StoreOutcome& outcome) noexcept {
  if (list_ != nullptr) {
    list_->complete(item.index, outcome);
  } else {
    one_->complete(outcome);
  }
}

}  // namespace fcap::redis
