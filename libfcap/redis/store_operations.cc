#include "redis/store_operations.h"

#include <utility>

#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::redis {
namespace {

// KEYS[1] the record. ARGV: whether there must be one ('1') or none ('0'), its expected value, its
// new value (empty: it is deleted), its expiry in ms, and whether it may have been appended to
// ('1'): then the appended bytes stay. If the record has a later expiry already, that one stays.
//
// Flags at the beginning of a script need Redis 7. With them the script may write although memory
// is full; it is used only if the record becomes shorter.
constexpr std::string_view kShrinkingScript =
    "#!lua flags=allow-oom\n"
    "local current = redis.call('GET', KEYS[1])\n"
    "local desired = ARGV[3]\n"
    "if ARGV[1] == '1' then\n"
    "  if current ~= ARGV[2] then\n"
    "    if ARGV[5] ~= '1' or not current then return 0 end\n"
    "    if string.sub(current, 1, #ARGV[2]) ~= ARGV[2] then return 0 end\n"
    "    desired = desired .. string.sub(current, #ARGV[2] + 1)\n"
    "  end\n"
    "elseif current then\n"
    "  return 0\n"
    "end\n"
    "if desired == '' then\n"
    "  redis.call('DEL', KEYS[1])\n"
    "  return 1\n"
    "end\n"
    "local expire_at = ARGV[4]\n"
    "if current then\n"
    "  local present = redis.call('PEXPIRETIME', KEYS[1])\n"
    "  if present > tonumber(expire_at) then expire_at = string.format('%.0f', present) end\n"
    "end\n"
    "redis.call('SET', KEYS[1], desired, 'PXAT', expire_at)\n"
    "return 1\n";

constexpr std::string_view kScript = kShrinkingScript.substr(kShrinkingScript.find('\n') + 1);

constexpr auto kSha = sha1_hex(kScript);
constexpr auto kShrinkingSha = sha1_hex(kShrinkingScript);

// How often a read goes elsewhere: from the master to a replica, to that one once more when the
// Sentinels close its connections, and back to the next master.
constexpr int kRepeatsMax = 3;

// The command's words: its name, the script, the number of keys, the key, five arguments.
constexpr std::size_t kWords = 9;

}  // namespace

std::string_view compare_and_set_script() noexcept {
  return kScript;
}

std::string_view compare_and_set_sha() noexcept {
  return {kSha.data(), kSha.size()};
}

// --- GET.

void GetOperation::start(std::string_view key, Store::Deadline deadline_at, StoreCompletion& done) {
  may_be_stale = may_join = false;
  submit(key, deadline_at, done);
}

void GetOperation::start_joining(std::string_view key, Store::Deadline deadline_at,
                                 StoreCompletion& done) {
  may_be_stale = false;
  may_join = true;
  submit(key, deadline_at, done);
}

void GetOperation::start_maybe_stale(std::string_view key, Store::Deadline deadline_at,
                                     StoreCompletion& done) {
  may_be_stale = may_join = true;
  repeats_left_ = kRepeatsMax;
  submit(key, deadline_at, done);
}

void GetOperation::submit(std::string_view key, Store::Deadline deadline_at,
                          StoreCompletion& done) {
  by_replica = false;
  done_ = &done;
  form = WireForm::kGetKey;
  wire = key;
  slot = client_.goes_by_slot() ? slot_of(key) : std::uint16_t{0};
  deadline = deadline_at;
  client_.submit(*this);
}

// The view of the record ends with this call, so it completes here rather than in on_done().
void GetOperation::on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept {
  misanswered = !complete_get(reply, *done_, by_replica);
}

void GetOperation::on_done(TransportCode code) noexcept {
  // What was lost with its connection can still be had elsewhere.
  if (may_be_stale && code == TransportCode::kUnavailable && repeats_left_-- > 0) {
    by_replica = false;
    return client_.submit(*this);
  }
  if (code != TransportCode::kOk) complete_failed(code);
  pools_.gets.give(this);
}

// --- Compare and set.

void CompareAndSetOperation::start(const Store::CompareAndSet& change, Store::Deadline deadline_at,
                                   StoreCompletion& done) {
  done_ = &done;
  has_error_ = false;
  whole_script_ = false;
  stored_ = false;
  wire.clear();
  // What is bound to connections is a mark: it goes by the script from the first time on, so that
  // an account that may not run scripts is refused before anything relies on its marks.
  if (!change.expected && !change.desired.empty() && !change.connection_epoch) {
    write_creation(change);
  } else {
    write_script(change);
  }
  slot = slot_of(change.key);
  deadline = deadline_at;
  epoch = change.connection_epoch;
  client_.submit(*this);
}

// A tenth of what the script costs the server.
void CompareAndSetOperation::write_creation(const Store::CompareAndSet& change) {
  append_word_count(wire, 6);
  append_word(wire, "SET");
  append_word(wire, change.key);
  append_word(wire, change.desired);
  append_word(wire, "PXAT");
  append_word(wire, std::to_string(to_ms(change.expire_at)));
  append_word(wire, "NX");
}

void CompareAndSetOperation::write_script(const Store::CompareAndSet& change) {
  shrinks_ = change.expected && change.desired.size() < change.expected->size();
  arguments_.clear();
  append_word(arguments_, "1");
  append_word(arguments_, change.key);
  append_word(arguments_, change.expected ? "1" : "0");
  append_word(arguments_, change.expected.value_or(std::string_view{}));
  append_word(arguments_, change.desired);
  append_word(arguments_, std::to_string(to_ms(change.expire_at)));
  append_word(arguments_, change.keep_appended ? "1" : "0");
  append_word_count(wire, kWords);
  append_word(wire, "EVALSHA");
  append_word(wire, shrinks_ ? std::string_view{kShrinkingSha.data(), kShrinkingSha.size()}
                             : compare_and_set_sha());
  wire += arguments_;
}

void CompareAndSetOperation::on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept {
  if (reply.kind == Reply::Kind::kInteger) {
    stored_ = reply.integer == 1;
  } else if (reply.kind == Reply::Kind::kStatus) {
    stored_ = true;  // of SET: OK
  } else if (reply.kind != Reply::Kind::kNil) {
    note_failure(reply);
  }
}

void CompareAndSetOperation::on_done(TransportCode code) noexcept {
  if (code == TransportCode::kOk && has_error_ && !whole_script_ &&
      error_.starts_with("NOSCRIPT")) {
    whole_script_ = true;
    has_error_ = false;
    wire.clear();
    append_word_count(wire, kWords);
    append_word(wire, "EVAL");
    append_word(wire, shrinks_ ? kShrinkingScript : kScript);
    wire += arguments_;
    return client_.submit(*this);
  }
  if (code != TransportCode::kOk) {
    complete_failed(code);
  } else if (has_error_) {
    complete({.code = StoreCode::kServerError, .text = error_});
  } else {
    complete({.code = stored_ ? StoreCode::kOk : StoreCode::kConflict});
  }
  pools_.compare_and_sets.give(this);
}

}  // namespace fcap::redis
