#include "updater/settings/fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include <fmt/core.h>

#include "base/time_text.h"

namespace fcap::updater {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

template <auto Section, auto Member>
constexpr auto& at(Settings& settings) {
  return settings.*Section.*Member;
}

template <auto Member>
constexpr auto& of_tls(Settings& settings) {
  return settings.redis.tls.*Member;
}

template <auto Section, auto Member>
std::size_t get_choice(const Settings& settings) {
  return static_cast<std::size_t>(settings.*Section.*Member);
}

template <auto Section, auto Member>
void set_choice(Settings& settings, std::size_t index) {
  auto& value = settings.*Section.*Member;
  value = static_cast<std::remove_reference_t<decltype(value)>>(index);
}

template <auto Section, auto Member>
constexpr ChoiceKind choice(std::span<const std::string_view> words) {
  return {words, get_choice<Section, Member>, set_choice<Section, Member>};
}

// In the order of the enumerations.
constexpr std::array<std::string_view, 2> kAssignments = {"eager", "cooperative-sticky"};
constexpr std::array<std::string_view, 3> kOffsetResets = {"earliest", "latest", "error"};
constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 3> kTopologies = {"single", "sentinel", "cluster"};
constexpr std::array<std::string_view, 3> kRequired = {"nothing", "impressions", "all"};
constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;

using S = Settings;
using K = KafkaSettings;
using R = RedisSettings;
using P = PipelineSettings;
using L = LedgerSettings;
using G = SignatureSettings;
using C = CompactionSettings;

constexpr std::array kSections = {
    Section{"kafka", "The topic of events, and how to read it."},
    Section{"redis", "Where the ledgers are kept."},
    Section{"postgres",
            "Where the rules come from. Counting needs no rules: they only decide what "
            "an oversized record keeps."},
    Section{"rules", "How the rules are kept current."},
    Section{"ledger",
            "What is recorded. Key prefix, retention and null user ids must be those of "
            "the ad servers' Checkers."},
    Section{"reservation", "Impressions that ad servers expect, for hard caps."},
    Section{"signatures", "Signed ids of events (docs/signed-ids.md): which are refused."},
    Section{"pipeline", "From Kafka to Redis: batches, limits and waits."},
    Section{"compaction", "Rewriting of records that have grown by appends."},
    Section{"http", "Metrics and health over HTTP."},
    Section{"log", "The log on standard error."},
};

constexpr std::array kFields = {
    Field{"kafka.brokers", ListKind{at<&S::kafka, &K::brokers>, 1},
          "Bootstrap brokers, each \"host:port\"; the default port is 9092."},
    Field{
        "kafka.topic",
        TextKind{at<&S::kafka, &K::topic>, true, "names several topics: run one updater per topic"},
        "The topic of events. An updater reads one."},
    Field{
        "kafka.dead_letter_topic", TextKind{at<&S::kafka, &K::dead_letter_topic>, false},
        "Receives messages that are not valid events, with their bytes and the reason. Empty: they "
        "are counted in the metrics and dropped."},
    Field{"kafka.group_id", TextKind{at<&S::kafka, &K::group_id>, true}, "The consumer group."},
    Field{"kafka.group_instance_id", TextKind{at<&S::kafka, &K::group_instance_id>, false},
          "Static membership: a name of its own for each updater of the group, so that a restart "
          "within the session timeout moves no partition. Empty: dynamic membership."},
    Field{"kafka.client_id", TextKind{at<&S::kafka, &K::client_id>, true},
          "The name of this client in the broker's logs and quotas."},
    Field{"kafka.assignment", choice<&S::kafka, &K::assignment>(kAssignments),
          "How partitions are distributed. librdkafka before 2.10 may lose assignments with "
          "cooperative-sticky and manual commits."},
    Field{"kafka.offset_reset", choice<&S::kafka, &K::offset_reset>(kOffsetResets),
          "Where to start when the group has no offset or the broker no longer has it. With "
          "\"latest\", events that are already in the topic may not be counted."},
    Field{
        "kafka.silence_max", DurationKind{at<&S::kafka, &K::silence_max>, 2s, 1h},
        "When no broker has answered for this long, dead or frozen, /readyz fails, and the metrics "
        "that only a broker can know have no samples. Kafka is asked every other second."},
    Field{"kafka.sasl_password",
          SecretKind{at<&S::kafka, &K::sasl_password>, "kafka-sasl-password"},
          "For SASL; the mechanism and the user are given in kafka.properties. `run` restarts by "
          "itself when the file has changed."},
    Field{"kafka.properties", MapKind{at<&S::kafka, &K::properties>},
          "Passed to librdkafka unchanged, such as \"security.protocol\". `run` restarts by itself "
          "when a file that ssl.ca.location, ssl.certificate.location, ssl.key.location, "
          "ssl.keystore.location or ssl.crl.location names has changed."},

    Field{
        "redis.topology", choice<&S::redis, &R::topology>(kTopologies),
        "What redis.addresses names: a single server, Sentinels that know where the master is, or "
        "nodes of a Redis Cluster. Every connection verifies that it has reached a master."},
    Field{
        "redis.addresses", ListKind{at<&S::redis, &R::addresses>, 1},
        "\"host:port\", \"[v6]:port\" or \"/path/to/redis.sock\"; with Sentinels all of theirs. Or "
        "one URL, which wins over the other settings: \"redis://user@host:port/database\", "
        "\"redis-sentinel://user@host:port,host:port/master/database\" or "
        "\"redis-cluster://user@host:port,host:port\". A URL may hold a password only in the "
        "environment."},
    Field{"redis.sentinel_master", TextKind{at<&S::redis, &R::sentinel_master>, false},
          "The master's name on the Sentinels."},
    Field{"redis.sentinel_user", TextKind{at<&S::redis, &R::sentinel_user>, false},
          "ACL user on the Sentinels. Empty: the default user."},
    Field{"redis.sentinel_password",
          SecretKind{at<&S::redis, &R::sentinel_password>, "redis-sentinel-password"},
          "The Sentinels' own; without one, no AUTH is sent to them."},
    Field{"redis.user", TextKind{at<&S::redis, &R::user>, false},
          "ACL user. Empty: the default user."},
    Field{"redis.password", SecretKind{at<&S::redis, &R::password>, "redis-password"},
          "Without one, no AUTH is sent."},
    Field{"redis.database", IntegerKind{at<&S::redis, &R::database>, 0, 1023},
          "The database's number."},
    Field{"redis.connect_timeout", DurationKind{at<&S::redis, &R::connect_timeout>, 10ms, 60s},
          "How long a connection attempt may take, AUTH included."},
    Field{"redis.io_threads", IntegerKind{at<&S::redis, &R::io_threads>, 1, 16},
          "Threads and connections to Redis; one is enough for one server."},
    Field{"redis.tls.enabled", FlagKind{of_tls<&RedisTls::enabled>},
          "TLS 1.2 or later towards Redis."},
    Field{
        "redis.tls.ca_file", TextKind{of_tls<&RedisTls::ca_file>, false},
        "Certificates of the authorities to trust, in PEM. Empty, and no ca_directory: those that "
        "the system trusts. This file and the others of redis.tls and redis.password_file may be "
        "replaced while the updater runs."},
    Field{"redis.tls.ca_directory", TextKind{of_tls<&RedisTls::ca_directory>, false},
          "A directory of such certificates, as `openssl rehash` makes it."},
    Field{"redis.tls.certificate_file", TextKind{of_tls<&RedisTls::certificate_file>, false},
          "The updater's own certificate, in PEM, where Redis requires one."},
    Field{"redis.tls.key_file", TextKind{of_tls<&RedisTls::key_file>, false},
          "Its private key, without a passphrase. Empty: the key is in the certificate's file."},
    Field{"redis.tls.server_name", TextKind{of_tls<&RedisTls::server_name>, false},
          "What the server's certificate must be for. Empty: the host of the address."},
    Field{"redis.tls.verify", FlagKind{of_tls<&RedisTls::verify>},
          "If false, the connection is encrypted, but the server may be anyone. For tests."},

    Field{"postgres.conninfo", TextKind{at<&S::postgres, &PostgresSettings::conninfo>, false},
          "A libpq connection string, without the password. Empty: PostgreSQL is not used."},
    Field{"postgres.password",
          SecretKind{at<&S::postgres, &PostgresSettings::password>, "postgres-password"},
          "For PostgreSQL; not needed with peer or trust authentication. `run` restarts by itself "
          "when the file has changed."},

    Field{"rules.snapshot_file", TextKind{at<&S::rules, &RulesSettings::snapshot_file>, false},
          "The last good rules: written after each load and read when PostgreSQL is gone. Without "
          "PostgreSQL it is the source itself. Empty: none."},
    Field{"rules.poll_interval", DurationKind{at<&S::rules, &RulesSettings::poll_interval>, 1s, 1h},
          "How often the rules' version is checked, give or take a tenth."},
    Field{"rules.listen", FlagKind{at<&S::rules, &RulesSettings::listen>},
          "Also LISTEN, so that changes arrive at once; holds one connection."},
    Field{"rules.shrink_refused_below",
          ShareKind{at<&S::rules, &RulesSettings::shrink_refused_below>, 0, 1},
          "A reload with fewer rules than this share of the last is refused. 0: never."},
    Field{"rules.accept_any_shrink", FlagKind{at<&S::rules, &RulesSettings::accept_any_shrink>},
          "Accept a rule set even if it is empty or has shrunk sharply."},

    Field{"ledger.key_prefix", TextKind{at<&S::ledger, &L::key_prefix>, true},
          "Keys are \"<prefix>:{<user id>}\". No braces or wildcards."},
    Field{"ledger.retention", DurationKind{at<&S::ledger, &L::retention>, 1h, days{400}},
          "How long events are kept. The longest window of any rule must fit."},
    Field{"ledger.record_bytes_max",
          IntegerKind{at<&S::ledger, &L::record_bytes_max>, kKiB, kMiB, true},
          "A user's record is trimmed to this size, keeping what the rules need first."},
    Field{
        "ledger.allowed_future", DurationKind{at<&S::ledger, &L::allowed_future>, 0ms, days{1}},
        "Events further ahead of all clocks than this (the updater's, Redis' and the broker's) go "
        "to the dead-letter topic."},
    Field{"ledger.null_user_ids", ListKind{at<&S::ledger, &L::null_user_ids>, 0},
          "User ids that stand for \"unknown\": not counted. The empty id always does."},

    Field{"reservation.max_life",
          DurationKind{at<&S::reservation, &ReservationSettings::max_life>, 1s, days{1}},
          "The longest that an ad server's reservation counts that nobody confirms."},

    Field{"signatures.key_file", TextKind{at<&S::signatures, &G::key_file>, false},
          "A JSON file of the keys that ad servers sign with. It is read again within five seconds "
          "of a change. Empty: ids are not verified."},
    Field{"signatures.required", choice<&S::signatures, &G::required>(kRequired),
          "With a key file: which events are refused if their ids have no signature. Ids that are "
          "signed are verified in any case."},
    Field{"signatures.lifetime", DurationKind{at<&S::signatures, &G::lifetime>, 1s, days{400}},
          "An event later than this after the serve time in its signed id is refused."},
    Field{"signatures.early_allowed", DurationKind{at<&S::signatures, &G::early_allowed>, 0ms, 1h},
          "How much earlier than that serve time an event may be: by how much the clock that "
          "stamps events may be behind the ad servers' clocks."},

    Field{"pipeline.batch_events_max",
          IntegerKind{at<&S::pipeline, &P::batch_events_max>, 1, 1'000'000},
          "Events that go to Redis together."},
    Field{"pipeline.batch_wait", DurationKind{at<&S::pipeline, &P::batch_wait>, 0ms, 10s},
          "How long a batch that is not full waits for more."},
    Field{"pipeline.in_flight_bytes_max",
          IntegerKind{at<&S::pipeline, &P::in_flight_bytes_max>, kKiB, 16 * kGiB, true},
          "Partitions are paused when this much waits for Redis. Not below message_bytes_max."},
    Field{"pipeline.message_bytes_max",
          IntegerKind{at<&S::pipeline, &P::message_bytes_max>, 128, 16 * kMiB, true},
          "A longer message goes to the dead-letter topic without being decoded."},
    Field{"pipeline.rejected_share_max", ShareKind{at<&S::pipeline, &P::rejected_share_max>, 0, 1},
          "When more than this share of a minute's messages is rejected, /readyz fails: a producer "
          "has probably changed its format. 1: never."},
    Field{"pipeline.redis_deadline", DurationKind{at<&S::pipeline, &P::redis_deadline>, 10ms, 60s},
          "A write that is not acknowledged within this time is retried."},
    Field{"pipeline.retry_backoff_min",
          DurationKind{at<&S::pipeline, &P::retry_backoff_min>, 1ms, 60s},
          "The first wait before a write is retried; doubles each time, with jitter."},
    Field{"pipeline.retry_backoff_max",
          DurationKind{at<&S::pipeline, &P::retry_backoff_max>, 1ms, 60s},
          "The longest wait before a write is retried."},
    Field{"pipeline.commit_interval", DurationKind{at<&S::pipeline, &P::commit_interval>, 10ms, 1h},
          "How often acknowledged offsets are committed to Kafka."},
    Field{
        "pipeline.mark_interval", DurationKind{at<&S::pipeline, &P::mark_interval>, 0ms, 60s},
        "How often a partition's mark is written to Redis. After Redis has lost data, at most the "
        "messages of this time are read in addition. 0: with each batch."},
    Field{
        "pipeline.gap_messages_min",
        IntegerKind{at<&S::pipeline, &P::gap_messages_min>, 0, 1'000'000'000'000},
        "If Redis has lost data and at least this many messages of a partition must be read again, "
        "they do not hold up the later ones: those are counted at once, while the gap is filled "
        "beside them, the newest messages first. Fewer, and with 0 any number, are read again "
        "before the later ones."},
    Field{"pipeline.drain_timeout", DurationKind{at<&S::pipeline, &P::drain_timeout>, 0ms, 10min},
          "How long the updater waits for writes in flight when it stops or gives up a partition. "
          "What is not acknowledged by then is read again."},

    Field{"compaction.enabled", FlagKind{at<&S::compaction, &C::enabled>},
          "Compact records while counting. If false, only `fcap-updater sweep` compacts."},
    Field{"compaction.tail_bytes_min",
          IntegerKind{at<&S::compaction, &C::tail_bytes_min>, 16, kMiB, true},
          "A record is compacted when its tail of appends exceeds this and tail_share."},
    Field{"compaction.tail_share", ShareKind{at<&S::compaction, &C::tail_share>, 0, 100},
          "The tail as a share of the compacted part."},
    Field{"compaction.quiet_after", DurationKind{at<&S::compaction, &C::quiet_after>, 1s, 1h},
          "A user's record with a tail is compacted this long after the last event."},
    Field{"compaction.queue_users_max",
          IntegerKind{at<&S::compaction, &C::queue_users_max>, 1'000, 100'000'000},
          "How many recently written users are remembered, at about 150 bytes each. The sweep "
          "compacts the records of the others."},
    Field{"compaction.in_flight_max", IntegerKind{at<&S::compaction, &C::in_flight_max>, 1, 10'000},
          "How many records are compacted at a time."},
    Field{"compaction.redis_deadline",
          DurationKind{at<&S::compaction, &C::redis_deadline>, 10ms, 60s},
          "The deadline of each read and of each compare-and-set."},
    Field{"compaction.drain_timeout",
          DurationKind{at<&S::compaction, &C::drain_timeout>, 0ms, 10min},
          "When the updater stops, it compacts remembered records for at most this long. 0: not at "
          "all."},
    Field{"compaction.sweep_keys_per_second",
          IntegerKind{at<&S::compaction, &C::sweep_keys_per_second>, 1, 10'000'000},
          "The rate at which `fcap-updater sweep` visits records."},
    Field{"compaction.sweep_scan_count",
          IntegerKind{at<&S::compaction, &C::sweep_scan_count>, 1, 100'000},
          "COUNT of the sweep's SCAN commands."},

    Field{"http.enabled", FlagKind{at<&S::http, &HttpSettings::enabled>},
          "Serve /metrics, /healthz and /readyz."},
    Field{"http.address", TextKind{at<&S::http, &HttpSettings::address>, true},
          "The IP address to listen on, or \"localhost\". The pages have no authentication."},
    Field{"http.port", IntegerKind{at<&S::http, &HttpSettings::port>, 0, 65'535},
          "The port. 0: any free port, which the log names."},
    Field{"http.stalled_after", DurationKind{at<&S::http, &HttpSettings::stalled_after>, 1s, 1h},
          "/healthz fails when the main loop has been stalled for this long."},

    Field{"log.level", choice<&S::log, &LogSettings::level>(kLevels),
          "The lowest level that is written."},
    Field{"log.format", choice<&S::log, &LogSettings::format>(kFormats),
          "Plain lines, or one JSON object per line."},
};

std::string describe(const IntegerKind& kind) {
  const auto show = [&](std::int64_t value) {
    return kind.bytes ? format_bytes(value) : fmt::format("{}", value);
  };
  return fmt::format("{}, {} to {}", kind.bytes ? "bytes" : "number", show(kind.min),
                     show(kind.max));
}
std::string describe(const ShareKind& kind) {
  return fmt::format("share, {} to {}", kind.min, kind.max);
}
std::string describe(const DurationKind& kind) {
  return fmt::format("duration, {} to {}", base::format_length(kind.min),
                     base::format_length(kind.max));
}
std::string describe(const FlagKind& /*kind*/) {
  return "true or false";
}
std::string describe(const TextKind& kind) {
  return kind.required ? "text, not empty" : "text, may be empty";
}
std::string describe(const SecretKind& /*kind*/) {
  return "secret";
}
std::string describe(const ListKind& kind) {
  return kind.items_min == 0 ? "list of texts" : "list of texts, not empty";
}
std::string describe(const MapKind& /*kind*/) {
  return "object of texts";
}
std::string describe(const ChoiceKind& kind) {
  std::string text = "one of";
  for (const std::string_view word : kind.words) {
    text += fmt::format("{} \"{}\"", word == kind.words.front() ? "" : ",", word);
  }
  return text;
}

}  // namespace

std::span<const Field> fields() noexcept {
  return kFields;
}
std::span<const Section> sections() noexcept {
  return kSections;
}

const Field* find_field(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kFields, name, &Field::name);
  return found == kFields.end() ? nullptr : found;
}

std::string describe_kind(const Field& field) {
  return std::visit([](const auto& kind) { return describe(kind); }, field.kind);
}

std::string environment_name(std::string_view field_name) {
  std::string name = "FCAP_UPDATER_";
  for (const char c : field_name) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes != 0 && bytes % kGiB == 0) return fmt::format("{}GiB", bytes / kGiB);
  if (bytes != 0 && bytes % kMiB == 0) return fmt::format("{}MiB", bytes / kMiB);
  if (bytes != 0 && bytes % kKiB == 0) return fmt::format("{}KiB", bytes / kKiB);
  return fmt::format("{}", bytes);
}

}  // namespace fcap::updater
