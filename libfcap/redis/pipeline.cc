#include "redis/pipeline.h"

#include <algorithm>
#include <utility>

#include "redis/command.h"

namespace fcap::redis {
namespace {

constexpr std::size_t kErrorBytesMax = 256;

}  // namespace

bool is_refusal(const Reply& reply) noexcept {
  if (reply.kind != Reply::Kind::kError) return false;
  return reply.text.starts_with("LOADING") || reply.text.starts_with("MASTERDOWN") ||
         reply.text.starts_with("CLUSTERDOWN") || reply.text.starts_with("TRYAGAIN");
}

Pipeline::Pipeline(const Options& options, std::atomic<std::size_t>& operations)
    : Pipeline(options, operations, Cluster{}) {}

Pipeline::Pipeline(const Options& options, std::atomic<std::size_t>& operations, Cluster cluster)
    : options_(options), operations_(operations), cluster_(cluster) {}

void Pipeline::leave() noexcept {
  operations_.fetch_sub(1, std::memory_order_relaxed);
  if (cluster_.node_operations != nullptr) {
    cluster_.node_operations->fetch_sub(1, std::memory_order_relaxed);
  }
}

void Pipeline::add(Request& request, TimePoint now) {
  const bool is_fair = request.deadline - now >= kFairTime;
  waiting_.push_back({.request = &request,
                      .deadline = request.deadline,
                      .commands = request.command_count,
                      .commands_left = request.command_count,
                      .is_patient = request.patient,
                      .is_fair = is_fair});
  next_deadline_ = std::min(next_deadline_, request.deadline);
}

void Pipeline::write_own(Request& request, std::string& wire) {
  wire.append(request.wire);
  sent_.push_back({.request = &request,
                   .deadline = request.deadline,
                   .commands = request.command_count,
                   .commands_left = request.command_count,
                   .is_own = true});
  next_deadline_ = std::min(next_deadline_, request.deadline);
}

void Pipeline::write(std::string& wire) {
  while (!waiting_.empty() && wire.size() < options_.wire_bytes_max) {
    const QueueEntry entry = waiting_.front();
    if (entry.request == nullptr) {
      waiting_.pop_front();
    } else if (entry.request->asking) {
      write_asking(wire, entry);
      waiting_.pop_front();
    } else if (entry.request->form == Request::WireForm::kGetKey) {
      write_gets(wire);
    } else {
      wire.append(entry.request->wire);
      waiting_.pop_front();
      sent_.push_back(entry);
    }
  }
}

// A request that was redirected to a node to which its slot is still being migrated. It has one
// command, and neither joins others nor do they join it.
void Pipeline::write_asking(std::string& wire, QueueEntry entry) {
  append_command(wire, {"ASKING"});
  if (entry.request->form == Request::WireForm::kGetKey) {
    append_command(wire, {"GET", entry.request->wire});
  } else {
    wire.append(entry.request->wire);
  }
  entry.asks = true;
  sent_.push_back(entry);
}

// The GETs at the front of the queue, as one command. Reads of one key that follow each other, as
// those of a page with several slots do, become one: it has not been sent, so what it finds is no
// older than what each of them would find. Only neighbours are compared, since looking for a key
// among all of a group costs more than most reads save.
void Pipeline::write_gets(std::string& wire) {
  const std::size_t first = sent_.size();
  std::size_t keys = 0;
  while (!waiting_.empty()) {
    QueueEntry entry = waiting_.front();
    if (entry.request != nullptr) {
      if (entry.request->form != Request::WireForm::kGetKey || entry.request->asking) break;
      entry.joins = keys != 0 && entry.request->may_join &&
                    entry.request->wire == sent_[sent_.size() - 1].request->wire;
      if (!entry.joins && keys == options_.mget_keys_max) break;
      keys += entry.joins ? 0 : 1;
      sent_.push_back(entry);
    }
    waiting_.pop_front();
  }
  if (keys == 1) {
    append_command(wire, {"GET", sent_[first].request->wire});
    return;
  }
  append_word_count(wire, keys + 1);
  append_word(wire, "MGET");
  for (std::size_t i = first; i < sent_.size(); ++i) {
    if (!sent_[i].joins) append_word(wire, sent_[i].request->wire);
  }
  sent_[first].mget_keys = static_cast<std::uint32_t>(keys);
}

bool Pipeline::on_reply(const Reply& reply) {
  if (sent_.empty()) return false;
  if (sent_.front().mget_keys > 1) return on_mget_reply(reply);
  if (!sent_.front().is_own) note_error(reply);
  return std::exchange(sent_.front().asks, false) || on_get_reply(reply);
}

bool Pipeline::on_mget_reply(const Reply& reply) {
  const std::size_t keys = sent_.front().mget_keys;
  if (reply.kind == Reply::Kind::kError) {
    // A node of a cluster refuses keys of several slots, and an ACL may allow only GET: continue
    // without MGET.
    const bool refused = reply.text.starts_with("CROSSSLOT") || reply.text.starts_with("NOPERM");
    if (refused) {
      options_.mget_keys_max = 1;
    } else {
      note_error(reply);
    }
    std::size_t keys_left = keys;
    while (keys_left != 0 || (!sent_.empty() && sent_.front().joins)) {
      if (!sent_.front().joins) --keys_left;
      if (refused && sent_.front().request != nullptr) {
        waiting_.push_back(sent_.front());
        waiting_[waiting_.size() - 1].mget_keys = 1;
        sent_.pop_front();
      } else if (!on_entry_reply(reply)) {
        return false;
      }
    }
    return true;
  }
  if (reply.kind != Reply::Kind::kArray || reply.elements.size() != keys) return false;
  return std::ranges::all_of(reply.elements,
                             [this](const Reply& element) { return on_get_reply(element); });
}

// One reply for the entry at the front and for those that have joined its read.
bool Pipeline::on_get_reply(const Reply& reply) {
  do {
    if (!on_entry_reply(reply)) return false;
  } while (!sent_.empty() && sent_.front().joins);
  return true;
}

// One reply for the entry at the front.
bool Pipeline::on_entry_reply(const Reply& reply) {
  // Requests and replies have parted. Whose this one is nobody can know, so nobody gets it: the
  // connection is given up, and with it all that was sent.
  if (sent_.empty() || sent_.front().commands_left == 0) return false;
  QueueEntry& entry = sent_.front();
  Request* const request = entry.request;
  if (cluster_.redirects != nullptr && !entry.is_own && is_redirect(reply) &&
      take_redirect(entry, reply)) {
    return true;
  }
  if (request != nullptr && cluster_.epoch != nullptr) {
    request->answered_epoch = cluster_.epoch->load(std::memory_order_acquire);
  }
  if (request != nullptr) {
    request->on_reply(entry.commands - entry.commands_left, reply);
    if (std::exchange(request->misanswered, false)) return false;
  }
  if (--entry.commands_left != 0) return true;
  if (!entry.is_own) {
    leave();
    if (request != nullptr) ++(is_refusal(reply) ? refusals_ : successes_);
  }
  sent_.pop_front();
  ++answered_;
  if (request != nullptr) request->on_done(TransportCode::kOk);
  return true;
}

// Whether that was all of the entry at the front.
bool Pipeline::take_redirect(const QueueEntry& entry, const Reply& reply) {
  if (entry.commands != 1) {
    cluster_.redirects->redirect(nullptr, reply.text);
    return false;
  }
  Request* const request = entry.request;
  leave();
  sent_.pop_front();
  ++answered_;
  if (request != nullptr) ++successes_;
  cluster_.redirects->redirect(request, reply.text);
  return true;
}

void Pipeline::note_error(const Reply& reply) {
  if (reply.kind != Reply::Kind::kError) return;
  if (reply.text.starts_with("READONLY")) readonly_ = true;
  if (reply.text.starts_with("NOSCRIPT")) return;  // the script is sent whole then
  if (cluster_.redirects != nullptr && is_redirect(reply)) return;
  ++errors_;
  last_error_.assign(reply.text.substr(0, kErrorBytesMax));
}

void Pipeline::excuse() noexcept {
  for (std::size_t i = 0; i < waiting_.size(); ++i) waiting_[i].is_fair = false;
  for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i].is_fair = false;
}

Pipeline::Expired Pipeline::expire(TimePoint now) {
  if (now < next_deadline_) return {};
  next_deadline_ = TimePoint::max();
  Expired expired;
  expire_in(waiting_, now, expired);
  expire_in(sent_, now, expired);
  if (next_deadline_ != TimePoint::max()) {
    next_deadline_ = std::max(next_deadline_, now + options_.expire_pause);
  }
  return expired;
}

Pipeline::TimePoint Pipeline::due_at(const QueueEntry& entry) const noexcept {
  if (!entry.is_patient) return entry.deadline;
  return std::clamp(progress_at_ + kPatience, entry.deadline, entry.deadline + kPatienceMax);
}

void Pipeline::expire_in(RingQueue<QueueEntry>& entries, TimePoint now, Expired& expired) {
  const bool is_waiting = &entries == &waiting_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    QueueEntry& entry = entries[i];
    if (entry.request == nullptr) continue;
    if (const TimePoint due = due_at(entry); due > now) {
      next_deadline_ = std::min(next_deadline_, due);
      continue;
    }
    entry.deadline = due_at(entry);
    Request* const request = std::exchange(entry.request, nullptr);
    if (!entry.is_own) ++expired.count;
    if (!entry.is_own && entry.is_fair) ++expired.failures;
    if (is_waiting) {
      leave();
    } else {
      oldest_tombstone_ = std::min(oldest_tombstone_, entry.deadline);
    }
    request->on_done(TransportCode::kTimeout);
  }
}

void Pipeline::find_oldest_tombstone() noexcept {
  oldest_tombstone_ = TimePoint::max();
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i].request == nullptr) {
      oldest_tombstone_ = std::min(oldest_tombstone_, sent_[i].deadline);
    }
  }
}

std::size_t Pipeline::abandon_sent(TransportCode code) {
  std::size_t unfinished = 0;
  oldest_tombstone_ = TimePoint::max();
  while (!sent_.empty()) {
    const QueueEntry entry = sent_.front();
    sent_.pop_front();
    if (!entry.is_own && entry.request != nullptr) ++unfinished;
    finish(entry, code);
  }
  return unfinished;
}

void Pipeline::abandon_waiting(TransportCode code) {
  while (!waiting_.empty()) {
    const QueueEntry entry = waiting_.front();
    waiting_.pop_front();
    if (entry.request != nullptr) finish(entry, code);
  }
}

void Pipeline::abandon_bound(TransportCode code) {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    QueueEntry& entry = waiting_[i];
    if (entry.request == nullptr || !entry.request->epoch) continue;
    leave();
    std::exchange(entry.request, nullptr)->on_done(code);
  }
}

void Pipeline::finish(const QueueEntry& entry, TransportCode code) {
  if (!entry.is_own) leave();
  if (entry.request != nullptr) entry.request->on_done(code);
}

}  // namespace fcap::redis
