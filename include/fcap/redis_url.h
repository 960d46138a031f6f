#pragma once

#include <string_view>

#include <fcap/export.h>
#include <fcap/redis_options.h>
#include <fcap/status.h>

namespace fcap {

/// Reads where Redis is from one text, as applications usually keep it:
///
///     redis://[user[:password]@]host[:port][/database]
///     redis-sentinel://[user[:password]@]host[:port],host[:port]/master-name[/database][?parameters]
///     redis-cluster://[user[:password]@]host[:port],host[:port][?parameters]
///
/// The parameters are RedisOptions::replica_reads and replica_lag_max:
/// "replica_reads=when_master_fails&replica_lag_max=10s", with never, when_master_fails or nearest.
/// The schemes rediss://, rediss-sentinel:// and rediss-cluster:// set RedisTls::enabled, which
/// with Sentinels is for connections to them, too. User and password are those of the
/// Redis servers; the Sentinels' own are RedisOptions::sentinel_user and sentinel_password. In
/// user, password and the master's name "%40" stands for "@", as in every URL. The default ports
/// are 6379 and 26379. A text without "://" is an address, as in RedisOptions::addresses, with port
/// 6379 if it has none.
///
/// What the URL says replaces what `options` says; all else stays. Fails (kInvalidArgument) with a
/// text that says what is wrong and never repeats the password. Pure: connects to nothing.
[[nodiscard]] FCAP_EXPORT Result<RedisOptions> parse_redis_url(std::string_view text,
                                                               RedisOptions options = {});

}  // namespace fcap
