#include "rules/page_decision.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "rules/ranked_verdicts.h"

namespace fcap::rules {
namespace {

constexpr std::uint64_t kCampaignMax = (std::uint64_t{1} << 48) - 1;

// What the ledger holds under a slot's event id.
struct Holder {
  std::size_t slot = 0;
  std::uint64_t campaign = 0;
  bool is_reserved = false;  // an entry of the same identity comes before it
  std::uint64_t creative = 0;
  Instant time = {};
  std::optional<Instant> expires = {};
};

auto order_of(const Holder& holder) noexcept {
  return std::tuple(holder.slot, holder.campaign, holder.is_reserved);
}

// Who holds each slot, by slot and campaign: one pass through the ledger, however many slots there
// are.
class Holders {
 public:
  Holders(const ledger::Ledger& ledger, std::span<const std::uint32_t> fingerprints, Instant now) {
    for (std::size_t slot = 0; slot < fingerprints.size(); ++slot) {
      slots_.emplace_back(fingerprints[slot], slot);
    }
    std::sort(slots_.begin(), slots_.end());
    for (const ledger::Run& run : ledger.runs()) {
      if (run.type != EventType::kImpression) continue;
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        add(ledger.fingerprints()[i], {.campaign = run.campaign,
                                       .creative = ledger.creatives()[i],
                                       .time = ledger.times()[i]});
      }
    }
    for (const ledger::Reservation& held : ledger.reservations()) {
      if (held.event.type != EventType::kImpression || held.released || held.expires <= now) {
        continue;
      }
      add(held.event.fingerprint, {.campaign = held.event.campaign,
                                   .is_reserved = true,
                                   .creative = held.event.creative,
                                   .time = held.event.time,
                                   .expires = held.expires});
    }
    std::sort(holders_.begin(), holders_.end(),
              [](const Holder& a, const Holder& b) { return order_of(a) < order_of(b); });
  }

  [[nodiscard]] std::span<const Holder> of_slot(std::size_t slot) const noexcept {
    const auto [first, last] =
        std::equal_range(holders_.begin(), holders_.end(), Holder{.slot = slot},
                         [](const Holder& a, const Holder& b) { return a.slot < b.slot; });
    return {first, last};
  }

 private:
  void add(std::uint32_t fingerprint, Holder holder) {
    auto slot =
        std::lower_bound(slots_.begin(), slots_.end(), std::pair(fingerprint, std::size_t{0}));
    for (; slot != slots_.end() && slot->first == fingerprint; ++slot) {
      holder.slot = slot->second;
      holders_.push_back(holder);
    }
  }

  std::vector<std::pair<std::uint32_t, std::size_t>> slots_;  // by fingerprint
  std::vector<Holder> holders_;
};

// The campaign's among one slot's holders; null: it has none.
const Holder* holder_of(std::span<const Holder> holders, std::uint64_t campaign) noexcept {
  const auto found = std::lower_bound(
      holders.begin(), holders.end(), campaign,
      [](const Holder& holder, std::uint64_t wanted) { return holder.campaign < wanted; });
  return found == holders.end() || found->campaign != campaign ? nullptr : &*found;
}

// Gives slots their picks.
class Picking {
 public:
  Picking(Evaluator& evaluator, ledger::Ledger& ledger, const Evaluator::EvaluatorInput& question,
          const WantedPicks& wanted)
      : evaluator_(evaluator),
        ledger_(ledger),
        question_(as_hard(question)),
        wanted_(wanted),
        is_out_(wanted.candidates.size()),
        slots_(wanted.fingerprints.size()) {
    for (std::size_t i = 0; i < is_out_.size(); ++i) {
      is_out_[i] = wanted.candidates[i].campaign > kCampaignMax;
    }
  }

  std::vector<SlotPick> run() {
    std::vector<std::size_t> empty;
    const Holders holders(ledger_, wanted_.fingerprints, question_.now);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      const std::span<const Holder> held = holders.of_slot(slot);
      if (held.empty()) {
        empty.push_back(slot);
      } else {
        keep(slot, held);
      }
    }
    for (const std::size_t slot : empty) fill(slot);
    return std::move(slots_);
  }

 private:
  static Evaluator::EvaluatorInput as_hard(Evaluator::EvaluatorInput question) noexcept {
    question.any_confirmation_order = true;
    return question;
  }

  // A campaign may be a candidate with several creatives: the one that is held is the pick.
  void keep(std::size_t slot, std::span<const Holder> held) {
    const Holder* holder = &held.front();
    std::optional<std::size_t> candidate;
    for (std::size_t i = 0; i < wanted_.candidates.size() && !candidate; ++i) {
      if (is_out_[i]) continue;
      const Holder* const known = holder_of(held, wanted_.candidates[i].campaign);
      if (known == nullptr || known->creative != wanted_.candidates[i].creative) continue;
      is_out_[i] = true;
      candidate = i;
      holder = known;
    }
    slots_[slot] = {
        .candidate = candidate,
        .answer = holder->is_reserved ? ReserveAnswer::kHeld : ReserveAnswer::kConfirmed,
        .time = holder->time,
        .expires = holder->expires};
  }

  void fill(std::size_t slot) {
    collect_left();
    RankedVerdicts verdicts(evaluator_, question_, left_keys_, room_);
    for (std::size_t at = 0; at < left_.size(); ++at) {
      const std::size_t i = left_[at];
      // One that was released under this slot's id may still be shown in another slot.
      if (is_known(slot, i)) continue;
      if (!verdicts.is_judged(at) && is_late()) {
        slots_[slot].answer = ReserveAnswer::kLate;
        return;
      }
      const ReserveAnswer answer = answer_of(verdicts.of(at), ledger_, question_.now);
      is_out_[i] = true;
      if (answer == ReserveAnswer::kGranted) return assign(slot, i);
      lacks_history_ |= answer == ReserveAnswer::kIncomplete;
    }
    slots_[slot].answer = lacks_history_ ? ReserveAnswer::kIncomplete : ReserveAnswer::kCapped;
  }

  void collect_left() {
    left_.clear();
    left_keys_.clear();
    for (std::size_t i = 0; i < is_out_.size(); ++i) {
      if (is_out_[i]) continue;
      left_.push_back(i);
      left_keys_.push_back(wanted_.candidates[i]);
    }
  }

  // Whether its identity is there already: released, or by a slot whose id has the same
  // fingerprint.
  [[nodiscard]] bool is_known(std::size_t slot, std::size_t candidate) const noexcept {
    const ledger::Reservation* const known = ledger_.find_reservation(
        wanted_.candidates[candidate].campaign, EventType::kImpression, wanted_.fingerprints[slot]);
    return known != nullptr && (known->released || known->expires > question_.now);
  }

  [[nodiscard]] bool is_late() {
    return std::exchange(has_looked_, true) && wanted_.is_late && wanted_.is_late();
  }

  void assign(std::size_t slot, std::size_t candidate) {
    const Instant time = time_to_write(ledger_, question_.now);
    slots_[slot] = {.candidate = candidate,
                    .answer = ReserveAnswer::kGranted,
                    .time = time,
                    .expires = time + wanted_.life};
    ledger_.merge(ledger::Reservation{.event = {.time = time,
                                                .campaign = wanted_.candidates[candidate].campaign,
                                                .creative = wanted_.candidates[candidate].creative,
                                                .type = EventType::kImpression,
                                                .fingerprint = wanted_.fingerprints[slot]},
                                      .expires = time + wanted_.life});
  }

  Evaluator& evaluator_;
  ledger::Ledger& ledger_;
  const Evaluator::EvaluatorInput question_;
  const WantedPicks& wanted_;
  std::vector<bool> is_out_;  ///< per candidate: picked, refused, or invalid
  std::vector<SlotPick> slots_;
  bool lacks_history_ = false;
  bool has_looked_ = false;
  std::vector<std::size_t> left_;  ///< the candidates that are not out, and their keys
  std::vector<CandidateKey> left_keys_;
  std::vector<Verdict> room_;
};

}  // namespace

std::vector<SlotPick> decide_picks(Evaluator& evaluator, ledger::Ledger& ledger,
                                   const Evaluator::EvaluatorInput& question,
                                   const WantedPicks& wanted) {
  return Picking(evaluator, ledger, question, wanted).run();
}

}  // namespace fcap::rules
