#include "peers/layout.h"

namespace fcap::bench {

std::vector<std::unique_ptr<Layout>> make_peers() {
  std::vector<std::unique_ptr<Layout>> peers;
  peers.push_back(make_zset_layout());
  peers.push_back(make_lua_log_layout());
  peers.push_back(make_counter_keys_layout());
  peers.push_back(make_calendar_hash_layout());
  peers.push_back(make_window_hash_layout());
  return peers;
}

}  // namespace fcap::bench
