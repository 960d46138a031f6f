#include "redis/appends_operation.h"

#include <charconv>

#include "redis/command.h"
#include "redis/store_operations.h"

namespace fcap::redis {

void AppendsOperation::begin(StoreCompletion* one, StoreListCompletion* list) {
  one_ = one;
  list_ = list;
  patient = list != nullptr;
  items_.clear();
  at_ = 0;
  wire.clear();
  command_count = 0;
}

void AppendsOperation::add(const Store::Append& append, std::size_t index) {
  Item& item = items_.emplace_back();
  item = {.index = index,
          .known_bytes = append.known_bytes.value_or(kNothing),
          .appended_bytes = append.bytes.size(),
          .length_bytes = 0,
          .expire_at_ms = to_ms(append.expire_at),
          .key_offset = 0,
          .key_bytes = static_cast<std::uint32_t>(append.key.size()),
          .step = Step::kAppend};
  append_word_count(wire, 3);
  append_word(wire, "APPEND");
  append_word(wire, append.key);
  item.key_offset = static_cast<std::uint32_t>(wire.size() - append.key.size() - 2);
  append_word(wire, append.bytes);
  ++command_count;
}

// `key` must not point into `to`.
void AppendsOperation::add_expire(std::string& to, Item& item, std::string_view key,
                                  std::string_view flag) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, item.expire_at_ms).ptr;
  append_word_count(to, 4);
  append_word(to, "PEXPIREAT");
  append_word(to, key);
  item.key_offset = static_cast<std::uint32_t>(to.size() - key.size() - 2);
  append_word(to, {text, static_cast<std::size_t>(end - text)});
  append_word(to, flag);
  ++command_count;
}

void AppendsOperation::start(std::uint16_t slot_of_all, Store::Deadline deadline_at) {
  slot = slot_of_all;
  deadline = deadline_at;
  client_.submit(*this);
}

void AppendsOperation::on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept {
  on_item_reply(items_[at_], reply);
  ++at_;
  skip_over();
}

void AppendsOperation::skip_over() noexcept {
  while (at_ < items_.size() && items_[at_].step == Step::kOver) ++at_;
}

AppendsOperation::Step AppendsOperation::after_append(const Item& item) noexcept {
  if (item.length_bytes == item.appended_bytes) return Step::kExpireNew;
  // The record has grown by nothing but this append, so it is the known one.
  const bool as_known = item.length_bytes == item.known_bytes + item.appended_bytes;
  return item.known_bytes != kNothing && as_known ? Step::kOver : Step::kExpireLater;
}

void AppendsOperation::on_item_reply(Item& item, const Reply& reply) {
  if (reply.kind != Reply::Kind::kInteger) {
    const bool is_error = reply.kind == Reply::Kind::kError;
    item.step = Step::kOver;
    return complete(item, {.code = StoreCode::kServerError,
                           .length_bytes = item.length_bytes,
                           .text = is_error ? reply.text : "a reply of an unexpected kind"});
  }
  const bool expiry_set = reply.integer == 1;
  switch (item.step) {
    case Step::kAppend:
      item.length_bytes = static_cast<std::size_t>(reply.integer);
      item.step = after_append(item);
      break;
    case Step::kExpireLater:
      item.step = expiry_set ? Step::kOver : Step::kExpireNew;
      break;
    case Step::kExpireNew:
      item.step = expiry_set ? Step::kOver : Step::kExpireAgain;
      break;
    case Step::kExpireAgain:
    case Step::kOver:
      item.step = Step::kOver;
      break;
  }
  if (item.step == Step::kOver) {
    complete(item, {.code = StoreCode::kOk, .length_bytes = item.length_bytes});
  }
}

bool AppendsOperation::expire_the_rest() {
  next_wire_.clear();
  command_count = 0;
  for (Item& item : items_) {
    if (item.step == Step::kOver) continue;
    add_expire(next_wire_, item, key_of(item), item.step == Step::kExpireNew ? "NX" : "GT");
  }
  if (command_count == 0) return false;
  wire.swap(next_wire_);
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
    if (code == TransportCode::kUnavailable) why = client_.last_error();
    outcome.text = why;
    for (Item& item : items_) {
      if (item.step == Step::kOver) continue;
      outcome.length_bytes = item.length_bytes;
      complete(item, outcome);
    }
  }
  pools_.appends.give(this);
}

void AppendsOperation::complete(Item& item, const StoreOutcome& outcome) noexcept {
  if (list_ != nullptr) {
    list_->complete(item.index, outcome);
  } else {
    one_->complete(outcome);
  }
}

}  // namespace fcap::redis
