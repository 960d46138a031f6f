// CLUSTER NODES and INFO, as a node of a cluster or whoever sits between says them: any bytes are
// safe, and what is understood can be acted on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "updater/pipeline/node_look.h"
#include "updater/watch/redis_facts.h"

namespace {

using fcap::updater::NodeLook;
using fcap::updater::SlotSet;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_slots(const SlotSet& slots) {
  int beyond = -1;
  for (const SlotSet::Range& range : slots.ranges()) {
    require(beyond < range.first && range.first <= range.last && range.last < SlotSet::kSlots);
    beyond = range.last + 1;
  }
  require(SlotSet::read(slots.text()) == slots);
}

void require_line(const std::string& text) {
  require(text.find('\n') == std::string::npos);
}

// Marks are written into the slots of `self`, by this name and for this history of its data.
void check(const NodeLook& look) {
  require(!look.self.node.empty() && !look.self.replication.empty());
  require(look.self.former.empty() || look.self.former.find_first_not_of('0') != std::string::npos);
  for (const std::string* text : {&look.self.node, &look.self.replication, &look.self.former}) {
    require_line(*text);
  }
  for (const SlotSet* slots : {&look.self.owned, &look.self.migrating, &look.self.importing}) {
    require_slots(*slots);
  }
  for (const NodeLook::Master& master : look.masters) {
    require(!master.id.empty());
    require_line(master.id + master.address + master.named_address);
    require(master.named_address.empty() || master.named_address.find(':') != std::string::npos);
  }
}

void require_same(const NodeLook& look, const NodeLook& again) {
  require(
      look.is_master == again.is_master && look.self.node == again.self.node &&
      look.self.replication == again.self.replication && look.self.former == again.self.former &&
      look.self.owned == again.self.owned && look.self.migrating == again.self.migrating &&
      look.self.importing == again.self.importing && look.masters.size() == again.masters.size());
  for (std::size_t i = 0; i < look.masters.size(); ++i) {
    const NodeLook::Master& one = look.masters[i];
    const NodeLook::Master& other = again.masters[i];
    require(one.id == other.id && one.address == other.address &&
            one.named_address == other.named_address && one.has_slots == other.has_slots);
  }
}

void check_info(std::string_view info) {
  const auto facts = fcap::updater::parse_redis_info(info);
  for (const std::string* text : {&facts.version, &facts.role, &facts.eviction_policy}) {
    require_line(*text);
  }
  for (const auto& finding : fcap::updater::judge_redis(facts)) {
    require(finding.server == "redis" && !finding.text.empty());
  }
}

}  // namespace

// What stands before the first empty line is CLUSTER NODES, the rest is INFO.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kBetween = "\n\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view nodes = text.substr(0, text.find(kBetween));
  std::string_view info = text.substr(nodes.size());
  if (info.starts_with(kBetween)) info.remove_prefix(kBetween.size());
  check_info(info);
  const auto look = fcap::updater::read_node_look(nodes, info);
  const auto again = fcap::updater::read_node_look(nodes, info);
  require(look.has_value() == again.has_value());
  if (!look) return 0;
  check(*look);
  require_same(*look, *again);
  return 0;
}
