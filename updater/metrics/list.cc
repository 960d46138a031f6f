#include "updater/metrics/list.h"

#include <array>

namespace fcap::updater {
namespace {

using M = Metrics;

constexpr std::array kList = {
    MetricInfo{"build_info", AtScrape::kBuildInfo, "Always 1; the version is a label."},
    MetricInfo{"ready", AtScrape::kReady,
               "1 while /readyz says that events are being counted, else 0."},
    MetricInfo{"kafka_connected", AtScrape::kKafkaConnected,
               "1 while a broker answers; 0 when none has for kafka.silence_max."},

    MetricInfo{"messages_total", &M::messages,
               "Messages read from the topic, including those read again."},
    MetricInfo{"message_bytes_total", &M::message_bytes, "Bytes of the values of these messages."},
    MetricInfo{"events_written_total", &M::events_written,
               "Impressions, clicks and so on that Redis has acknowledged."},
    MetricInfo{"erasures_total", &M::erasures, "Erasures that Redis has acknowledged."},
    MetricInfo{"events_too_old_total", &M::events_too_old,
               "Events skipped because they are older than the retention."},
    MetricInfo{"events_null_user_total", &M::events_null_user,
               "Events skipped for lack of a usable user id (empty or listed as null)."},
    MetricInfo{"events_rejected_total", &M::rejected,
               "Messages that are not valid events, by the label `reason`."},
    MetricInfo{"dead_letters_total", &M::dead_letters,
               "Messages that the dead-letter topic has acknowledged."},
    MetricInfo{
        "dead_letter_failures_total", &M::dead_letter_failures,
        "Failed writes to the dead-letter topic. Each is retried, and the partition's offsets "
        "wait for it. A message that is too large is replaced by a stub."},

    MetricInfo{"assigned_partitions", &M::assigned_partitions,
               "Partitions that this member reads."},
    MetricInfo{"paused_partitions", &M::paused_partitions,
               "Partitions paused because Redis does not keep up."},
    MetricInfo{"waiting_partitions", &M::waiting_partitions,
               "Partitions that wait until the dead-letter topic has acknowledged one of their "
               "messages."},
    MetricInfo{
        "unreadable_partitions", &M::unreadable_partitions,
        "Assigned partitions that Kafka does not serve: an error, no leader, a broker that does "
        "not answer, or messages that do not come. /readyz and the log give partition and reason."},
    MetricInfo{"lag_messages", AtScrape::kLag,
               "Messages between what is acknowledged and the ends of the assigned partitions, "
               "also while they are paused. No sample while it is unknown: no partition is "
               "assigned, or no broker says where one ends."},
    MetricInfo{
        "partition_lag_messages", AtScrape::kPartitionLag,
        "The same of each one, by the labels `topic` and `partition`. Only of partitions that are "
        "assigned to this member, while it is known where they end."},
    MetricInfo{"oldest_unacknowledged_event_timestamp_seconds", AtScrape::kOldestUnacknowledged,
               "The broker's timestamp of the oldest message that is not acknowledged: "
               "time() minus this is the lag in seconds. No sample while everything is "
               "acknowledged, and while it is unknown for some partition."},
    MetricInfo{"pauses_total", &M::pauses, "How often partitions were paused."},
    MetricInfo{"rebalances_total", &M::rebalances, "Changes of the assignment."},
    MetricInfo{"commits_total", &M::commits, "Commits that the broker has acknowledged."},
    MetricInfo{"commit_failures_total", &M::commit_failures,
               "Commits that failed; the next one covers them."},
    MetricInfo{"offset_resets_total", &M::offset_resets,
               "How often the broker no longer had messages that were to be read. Investigate any "
               "increase: they may have expired, and their events are missing for good."},
    MetricInfo{"log_unverified_total", &M::log_unverified,
               "Partitions whose log was assumed to be the one read before, although every message "
               "that would identify it is gone."},

    MetricInfo{"batches_total", &M::batches, "Batches that Redis has acknowledged."},
    MetricInfo{"records_written_total", &M::records_written,
               "Appends to users' records; several events of one user in a batch are one append."},
    MetricInfo{"record_bytes_written_total", &M::record_bytes_written, "Bytes of these appends."},
    MetricInfo{"write_retries_total", &M::write_retries,
               "Writes that failed or were not acknowledged in time, and are retried."},
    MetricInfo{"in_flight_bytes", &M::in_flight_bytes,
               "Bytes that wait for an acknowledgement of Redis."},
    MetricInfo{"write_duration_seconds", &M::write_duration,
               "From a batch's first write to its last acknowledgement."},
    MetricInfo{"event_delay_seconds", &M::event_delay,
               "From the broker's timestamp to Redis' acknowledgement."},
    MetricInfo{"redis_connected", AtScrape::kRedisConnected, "1 while connected to Redis."},
    MetricInfo{"redis_connection_changes_total", AtScrape::kRedisConnectionChanges,
               "Connections made and lost."},
    MetricInfo{
        "redis_may_evict", AtScrape::kRedisMayEvict,
        "1 where Redis' maxmemory-policy is not noeviction: a full Redis then deletes users' "
        "records. Asked on each connection and every hour, as is the next one."},
    MetricInfo{"redis_evicted_keys", AtScrape::kRedisEvictedKeys,
               "How many keys Redis has evicted since it was started."},

    MetricInfo{"marks_written_total", &M::marks_written, "Marks that Redis has acknowledged."},
    MetricInfo{"mark_failures_total", &M::mark_failures,
               "Reads and writes of marks that failed. While a partition's mark cannot be "
               "confirmed, nothing is read of it."},
    MetricInfo{"mark_losses_total", &M::mark_losses,
               "Marks that were not what was written last: Redis has lost data, or another writer "
               "is at work."},
    MetricInfo{"redis_shards_away", &M::shards_away,
               "Shards of a Redis Cluster whose marks cannot be confirmed. The events of their "
               "users are put off, and read again when the shard is back; all others are counted. "
               "Masters without slots that cannot be asked are counted, too. /readyz names all of "
               "them."},
    MetricInfo{"rewinds_total", &M::rewinds, "How often a partition was set back to a mark."},
    MetricInfo{"rewound_messages_total", &M::rewound_messages,
               "Messages that are read again because of these rewinds."},
    MetricInfo{"gap_offsets", &M::gap_offsets,
               "Offsets whose events may be missing in Redis, and which are read again while later "
               "messages are counted. 0: nothing is missing. No sample while a mark of an assigned "
               "partition has not been compared, or a shard of a Redis Cluster is away, and it is "
               "not known whether anything is."},
    MetricInfo{"gap_messages_total", &M::gap_messages, "Messages read again to fill gaps."},
    MetricInfo{"gap_records_unread_total", &M::gap_records_unread,
               "Records that Redis did not give when a gap of theirs was to be filled. What is "
               "read again of them is appended whether it was missing or not, and they grow until "
               "they are compacted."},

    MetricInfo{"compactions_total", &M::compactions, "Records rewritten."},
    MetricInfo{"compaction_unneeded_total", &M::compaction_unneeded,
               "Records that were already compact, or no longer there."},
    MetricInfo{
        "compaction_conflicts_total", &M::compaction_conflicts,
        "Compare-and-set writes refused because the record had changed; the record is read again."},
    MetricInfo{"compaction_failures_total", &M::compaction_failures,
               "Compactions abandoned because Redis did not answer; retried after quiet_after."},
    MetricInfo{"compaction_saved_bytes_total", &M::compaction_bytes_saved,
               "Bytes by which records became shorter."},
    MetricInfo{"compaction_queued_users", &M::queued_users,
               "Recently written records that are remembered."},
    MetricInfo{"compaction_queue_overflows_total", &M::queue_overflows,
               "Written records that the queue had no room for; the sweep compacts them."},
    MetricInfo{"entries_expired_total", &M::entries_expired,
               "Entries that compaction removed because of their age."},
    MetricInfo{"entries_dropped_total", &M::entries_dropped,
               "Entries that compaction removed from oversized records."},
    MetricInfo{
        "repeated_ids_total", &M::repeated_ids,
        "Events that were merged into a later one with the same id, although their times are "
        "more than five minutes apart: different impressions, of which one counts. Counted "
        "when compaction merges them, so not while it is off or the queue overflows."},
    MetricInfo{"undecodable_records_total", &M::undecodable_records,
               "Records that this version cannot read and leaves unchanged."},
    MetricInfo{"unknown_frames_total", &M::unknown_frames,
               "Frames written by a newer version, kept as they are."},

    MetricInfo{"rule_set_version", AtScrape::kRuleSetVersion, "The version of the rules in use."},
    MetricInfo{"rules", AtScrape::kRuleCount, "The rules in use."},
    MetricInfo{"rule_set_age_seconds", AtScrape::kRuleSetAge,
               "Since the rules in use were last known to be the current ones. No sample before "
               "the first."},
    MetricInfo{"rule_reloads_total", AtScrape::kRuleReloads, "Rule sets loaded and put into use."},
    MetricInfo{"rule_reloads_refused_total", AtScrape::kRuleReloadsRefused,
               "Rule sets refused: invalid, empty or sharply shrunken."},
    MetricInfo{"rule_reloads_failed_total", AtScrape::kRuleReloadsFailed,
               "Attempts to load rules that got no answer."},
    MetricInfo{
        "rules_quarantined", AtScrape::kRulesQuarantined,
        "Rules of the version in use that are wrong and not in force; the log and /readyz name "
        "them."},
};

}  // namespace

std::span<const MetricInfo> metric_list() noexcept {
  return kList;
}

}  // namespace fcap::updater
