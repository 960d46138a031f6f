#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <fcap/verdict.h>

#include "checker/pool.h"
#include "checker/stripes.h"
#include "checker/thread_slot.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"

namespace fcap::checker {

/// What judging needs for itself; kept and used again, so that it does not allocate.
struct Scratch : PoolNode<Scratch> {
  ledger::Ledger ledger;
  rules::Evaluator evaluator;
  /// A search for picks looks at these candidates.
  std::vector<Verdict> verdicts;
  /// Whether the ledger is a replica's.
  bool stale = false;
  /// How many entries of the ledger only this process knows of yet.
  std::size_t unconfirmed = 0;

  /// An empty history.
  void clear() {
    ledger.clear();
    stale = false;
  }
};

/// A Scratch per thread slot, and a pool for whoever finds none free.
///
/// Thread safety: all functions from any thread.
class ScratchPool {
  struct alignas(kCacheLineBytes) Own {
    std::unique_ptr<Scratch> scratch;
    bool in_use = false;
  };

 public:
  /// Throws std::bad_alloc.
  ScratchPool() : pool_(Pool<Scratch>::make()) {}

  /// One of them, for a scope. Throws std::bad_alloc.
  class HeldScratch {
   public:
    explicit HeldScratch(ScratchPool& scratches) : own_(scratches.free_own()) {
      if (own_ == nullptr) {
        scratch_ = scratches.pool_->acquire();
        return;
      }
      if (!own_->scratch) own_->scratch = std::make_unique<Scratch>();
      own_->in_use = true;
      scratch_ = own_->scratch.get();
    }
    ~HeldScratch() {
      if (own_ == nullptr) {
        Pool<Scratch>::release(scratch_);
      } else {
        own_->in_use = false;
      }
    }
    HeldScratch(const HeldScratch&) = delete;
    HeldScratch& operator=(const HeldScratch&) = delete;
    Scratch& operator*() const noexcept { return *scratch_; }
    Scratch* operator->() const noexcept { return scratch_; }

   private:
    Own* own_;
    Scratch* scratch_ = nullptr;
  };

 private:
  /// Null where the thread has no slot, or is inside a call that uses its Scratch.
  [[nodiscard]] Own* free_own() noexcept {
    const std::size_t slot = own_thread_slot();
    return slot == kNoSlot || own_[slot].in_use ? nullptr : &own_[slot];
  }

  std::array<Own, kThreadSlots> own_{};
  Pool<Scratch>::Owner pool_;
};

}  // namespace fcap::checker
