#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

#include "redis/address.h"
#include "redis/node_session.h"
#include "redis/reply.h"
#include "redis/sentinel_answers.h"

namespace fcap::redis {

/// What a Sentinel says to SENTINEL GET-MASTER-ADDR-BY-NAME: the master's address, or why there is
/// none, naming the option to change; kNotFound: it knows no master of this name. Free of I/O.
[[nodiscard]] Result<Address> read_master_address(const Reply& reply, std::string_view master);

/// The config-epoch that a Sentinel says to SENTINEL MASTER; nullopt: it does not tell it, as where
/// its account may not ask. Free of I/O.
[[nodiscard]] std::optional<std::uint64_t> read_config_epoch(const Reply& reply) noexcept;

/// Asks a Sentinel, which is connected, where the master of this name is; kNotFound: it knows none.
[[nodiscard]] Result<NamedMaster> ask_master(NodeSession& sentinel, std::string_view master,
                                             NodeSession::TimePoint until);
/// Asks a Sentinel, which has just answered ask_master(), where the replicas are.
[[nodiscard]] Result<std::vector<Address>> ask_replicas(NodeSession& sentinel,
                                                        std::string_view master,
                                                        NodeSession::TimePoint until);

}  // namespace fcap::redis
