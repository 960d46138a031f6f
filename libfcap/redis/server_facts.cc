#include "redis/server_facts.h"

#include <charconv>
#include <string_view>

namespace fcap::redis {
namespace {

constexpr std::int64_t kClusterSlots = 16'384;
constexpr std::int64_t kMajorMin = 7;
constexpr std::int64_t kSecondsMax = 253'402'300'799;  // the end of the year 9999

std::int64_t leading_number(std::string_view text) noexcept {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Reads "name:value\r\n" lines.
std::optional<std::string_view> line_of(std::string_view lines, std::string_view name) noexcept {
  const auto found = lines.find(name);
  if (found == std::string_view::npos) return std::nullopt;
  return lines.substr(found + name.size());
}

}  // namespace

void ServerFacts::take_role(const Reply& reply) {
  role = ServerRole::kUnknown;
  role_text.clear();
  replica_link_up = true;
  if (reply.kind != Reply::Kind::kArray || reply.elements.empty()) return;
  const std::string_view name = reply.elements[0].text;
  if (name == "master") {
    role = ServerRole::kMaster;
    role_text = "master";
  } else if (name == "sentinel") {
    role = ServerRole::kSentinel;
    role_text = "Sentinel";
  } else if (name == "slave" && reply.elements.size() >= 4) {
    role = ServerRole::kReplica;
    const std::string_view link = reply.elements[3].text;
    // "connect", "connecting" and "handshake": no link; "sync": not the data yet.
    replica_link_up = link == "connected";
    role_text = "replica of " + std::string(reply.elements[1].text) + ":" +
                std::to_string(reply.elements[2].integer) + ", whose link is " +
                (replica_link_up ? "up" : "down (" + std::string(link) + ")");
  }
}

void ServerFacts::take_hello(const Reply& reply) {
  old_version.clear();
  // With these quotes, Redis up to 6.2 names a command that it does not know, or that was renamed.
  // Since 7.0, HELLO is allowed to every account; others that speak the protocol have other words.
  if (reply.kind == Reply::Kind::kError &&
      (reply.text.starts_with("ERR unknown command `") ||
       reply.text.starts_with("NOPERM this user has no permissions to run the 'hello' command"))) {
    old_version = "before 7.0";
  }
  std::string_view server;
  std::string_view version;
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    if (reply.elements[i].text == "server") server = reply.elements[i + 1].text;
    if (reply.elements[i].text == "version") version = reply.elements[i + 1].text;
  }
  // Others that speak the protocol have versions of their own.
  const std::int64_t major = leading_number(version);
  if (server == "redis" && major > 0 && major < kMajorMin) old_version = version;
}

void ServerFacts::take_cluster(const Reply& reply) {
  in_cluster = false;
  cluster_is_off = reply.kind == Reply::Kind::kError &&
                   reply.text.find("cluster support disabled") != std::string_view::npos;
  if (reply.kind != Reply::Kind::kString) return;
  const auto slots = line_of(reply.text, "cluster_slots_assigned:");
  const auto masters = line_of(reply.text, "cluster_size:");
  if (!slots || !masters) return;
  in_cluster = true;
  cluster_slots = leading_number(*slots);
  cluster_masters = leading_number(*masters);
}

void ServerFacts::take_time(const Reply& reply, Instant now) {
  clock_difference.reset();
  clock_text = "TIME: the answer is not a time";
  if (reply.kind == Reply::Kind::kError) {
    clock_text = "TIME: " + std::string(reply.text) +
                 ": allow the command TIME (+time) to the account of the option user";
  }
  if (reply.kind != Reply::Kind::kArray || reply.elements.size() != 2) return;
  const std::int64_t seconds = leading_number(reply.elements[0].text);
  if (seconds <= 0 || seconds > kSecondsMax) return;
  clock_text.clear();
  const std::int64_t ms = seconds * 1000 + leading_number(reply.elements[1].text) / 1000;
  clock_difference = instant_from_ms(ms) - now;
}

std::string ServerFacts::unfit_for_cluster() const {
  if (role == ServerRole::kSentinel || !old_version.empty()) return unfit();
  if (!cluster_is_off) return {};
  return "this server is not a node of a Redis Cluster: set the option topology to single or "
         "sentinel, or let the option addresses name nodes of a cluster";
}

std::string ServerFacts::unfit() const {
  if (role == ServerRole::kSentinel) {
    return "this is a Sentinel's port, which holds no records: the option addresses must name the "
           "Redis server itself";
  }
  if (!old_version.empty()) {
    return "this is Redis " + old_version +
           ": fcap needs 7.0 or later, which knows PEXPIRETIME and PEXPIREAT with NX and GT";
  }
  if (!in_cluster) return {};
  if (cluster_masters > 1) {
    return "this is a node of a Redis Cluster with " + std::to_string(cluster_masters) +
           " masters: set the option topology to cluster, or let the option addresses name a "
           "single server";
  }
  if (cluster_slots < kClusterSlots) {
    return "this is a node of a Redis Cluster in which " + std::to_string(cluster_slots) +
           " of 16384 slots are served: the option addresses must name a single server, or a "
           "cluster's only node with all slots";
  }
  return {};
}

}  // namespace fcap::redis
