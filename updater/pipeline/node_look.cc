#include "updater/pipeline/node_look.h"

#include <bitset>
#include <charconv>
#include <cstddef>

namespace fcap::updater {
namespace {

using Slots = std::bitset<SlotSet::kSlots>;

// What stands before `end`, which is passed over; all of it if there is no `end`.
std::string_view cut(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return before;
}

std::optional<int> slot_in(std::string_view text) {
  int slot = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && slot >= 0 && slot < SlotSet::kSlots ? std::optional(slot) : std::nullopt;
}

// "[93->-id]": on the way to another node; "[77-<-id]": on the way from there.
bool take_moving(std::string_view text, Slots& migrating, Slots& importing) {
  const std::size_t dash = text.find('-');
  const auto slot = slot_in(text.substr(0, dash));
  if (!slot || dash == std::string_view::npos) return false;
  const std::string_view arrow = text.substr(dash, 3);
  if (arrow != "->-" && arrow != "-<-") return false;
  (arrow == "->-" ? migrating : importing).set(static_cast<std::size_t>(*slot));
  return true;
}

bool take_range(std::string_view text, Slots& owned) {
  const std::size_t dash = text.find('-');
  const auto first = slot_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : slot_in(text.substr(dash + 1));
  if (!first || !last || *last < *first) return false;
  for (int slot = *first; slot <= *last; ++slot) owned.set(static_cast<std::size_t>(slot));
  return true;
}

bool take_slots(std::string_view words, ShardLook& look) {
  Slots owned;
  Slots migrating;
  Slots importing;
  while (!words.empty()) {
    std::string_view word = cut(words, ' ');
    if (word.empty()) continue;
    const bool moving = word.starts_with('[') && word.ends_with(']');
    if (moving) word = word.substr(1, word.size() - 2);
    if (!(moving ? take_moving(word, migrating, importing) : take_range(word, owned))) return false;
  }
  look.owned = SlotSet::of(owned);
  look.migrating = SlotSet::of(migrating);
  look.importing = SlotSet::of(importing);
  return true;
}

bool has_flag(std::string_view flags, std::string_view wanted) {
  while (!flags.empty()) {
    if (cut(flags, ',') == wanted) return true;
  }
  return false;
}

// "<ip>:<port>@<bus>[,<hostname>[,<key>=<value>…]]"
NodeLook::Master master_at(std::string_view id, std::string_view place) {
  const std::string_view address = cut(place, '@');
  cut(place, ',');  // the bus
  const std::string_view hostname = cut(place, ',');
  NodeLook::Master master{.id = std::string(id), .address = std::string(address)};
  if (hostname.empty() || hostname.find('=') != std::string_view::npos) return master;
  const std::size_t port = address.rfind(':');
  if (port == std::string_view::npos) return master;
  master.named_address = hostname;
  master.named_address += address.substr(port);
  return master;
}

// "<id> <place> <flags> <master> <ping> <pong> <epoch> <link> <slot> …"
bool take_node(std::string_view line, NodeLook& look) {
  constexpr int kSkipped = 5;
  const std::string_view id = cut(line, ' ');
  const std::string_view place = cut(line, ' ');
  const std::string_view flags = cut(line, ' ');
  for (int i = 0; i < kSkipped; ++i) cut(line, ' ');
  if (id.empty() || place.empty() || flags.empty()) return false;
  const bool is_master = has_flag(flags, "master");
  const bool is_self = has_flag(flags, "myself");
  const bool is_lost =
      has_flag(flags, "fail") || has_flag(flags, "noaddr") || has_flag(flags, "handshake");
  if (is_master && !is_lost) {
    look.masters.push_back(master_at(id, place));
    look.masters.back().has_slots = !line.empty();
  }
  if (!is_self) return true;
  look.is_master = is_master;
  look.self.node = id;
  return take_slots(line, look.self);
}

std::string_view info_value(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    std::string_view line = cut(info, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (cut(line, ':') == name) return line;
  }
  return {};
}

}  // namespace

std::optional<NodeLook> read_node_look(std::string_view cluster_nodes,
                                       std::string_view info_replication) {
  NodeLook look;
  while (!cluster_nodes.empty()) {
    std::string_view line = cut(cluster_nodes, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !take_node(line, look)) return std::nullopt;
  }
  look.self.replication = info_value(info_replication, "master_replid");
  look.self.former = info_value(info_replication, "master_replid2");
  // A master that has continued nobody's history reports zeros.
  if (look.self.former.find_first_not_of('0') == std::string::npos) look.self.former.clear();
  if (look.self.node.empty() || look.self.replication.empty()) return std::nullopt;
  look.is_master = look.is_master && info_value(info_replication, "role") == "master";
  return look;
}

}  // namespace fcap::updater
