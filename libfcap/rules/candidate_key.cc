#include "ledger/ids.h"
#include "rules/evaluate.h"

namespace fcap::rules {

CandidateKey candidate_key(const Candidate& candidate) noexcept {
  return {.campaign = ledger::id_hash(candidate.campaign),
          .creative = ledger::id_hash(candidate.creative)};
}

}  // namespace fcap::rules
