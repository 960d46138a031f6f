#include "updater/metrics/list.h"

#include <array>

namespace fcap::updater {
namespace {

using M = Metrics;

constexpr std::array kList = {
    MetricInfo{"build_info", Asked::kBuildInfo, "Always 1; the version is a label."},

    MetricInfo{"messages_total", &M::messages,
               "Messages read from the topic, those read again included."},
    MetricInfo{"message_bytes_total", &M::message_bytes, "Their values' bytes."},
    MetricInfo{"events_written_total", &M::events_written,
               "Impressions, clicks and so on that Redis has acknowledged."},
    MetricInfo{"erasures_total", &M::erasures, "Erasures that Redis has acknowledged."},
    MetricInfo{"events_too_old_total", &M::events_too_old,
               "Events older than the retention, passed over."},
    MetricInfo{"events_null_user_total", &M::events_null_user,
               "Events of nobody (an empty or a configured null user id), passed over."},
    MetricInfo{"events_rejected_total", &M::rejected,
               "Messages that are not events, by the label `reason`."},
    MetricInfo{"dead_letters_total", &M::dead_letters,
               "Messages that the dead-letter topic has acknowledged."},
    MetricInfo{"dead_letter_failures_total", &M::dead_letter_failures,
               "Attempts that the dead-letter topic did not take; each is made again, and the "
               "partition's offsets wait for it. What is too large is sent again as a stub."},

    MetricInfo{"assigned_partitions", &M::assigned_partitions, "Partitions this member reads."},
    MetricInfo{"paused_partitions", &M::paused_partitions,
               "Partitions that are paused because Redis does not keep up."},
    MetricInfo{"waiting_partitions", &M::waiting_partitions,
               "Partitions that are not read on before the dead-letter topic has taken a letter of "
               "theirs."},
    MetricInfo{"unreadable_partitions", &M::unreadable_partitions,
               "Assigned partitions of which Kafka gives nothing: an error, no leader, or a broker "
               "that does not answer. /readyz and the log say which and why."},
    MetricInfo{"lag_messages", &M::lag_messages,
               "Messages between what is acknowledged and the ends of the assigned partitions."},
    MetricInfo{"partition_lag_messages", &M::partition_lag_messages,
               "The same of each one, by the label `partition`. Only of partitions that are "
               "assigned to this member, once it is known where they end."},
    MetricInfo{"pauses_total", &M::pauses, "Times that partitions were paused."},
    MetricInfo{"rebalances_total", &M::rebalances, "Changes of the assignment."},
    MetricInfo{"commits_total", &M::commits, "Commits that the broker has acknowledged."},
    MetricInfo{"commit_failures_total", &M::commit_failures,
               "Commits that failed; the next one covers them."},
    MetricInfo{"offset_resets_total", &M::offset_resets,
               "Times that the broker no longer had the offset asked for. Any growth deserves a "
               "look: messages may have expired unread."},

    MetricInfo{"batches_total", &M::batches, "Batches that are written and acknowledged."},
    MetricInfo{"records_written_total", &M::records_written,
               "Appends to users' records; several events of a user in a batch are one."},
    MetricInfo{"record_bytes_written_total", &M::record_bytes_written, "Their bytes."},
    MetricInfo{"write_retries_total", &M::write_retries,
               "Writes that failed or were not acknowledged in time; each is made again."},
    MetricInfo{"in_flight_bytes", &M::in_flight_bytes, "What waits for Redis."},
    MetricInfo{"write_duration_seconds", &M::write_duration,
               "From a batch's first write to its last acknowledgement."},
    MetricInfo{"event_delay_seconds", &M::event_delay,
               "From the broker's timestamp to Redis' acknowledgement."},
    MetricInfo{"redis_connected", Asked::kRedisConnected, "1 while connected to Redis."},
    MetricInfo{"redis_connection_changes_total", Asked::kRedisConnectionChanges,
               "Connections made and lost."},

    MetricInfo{"marks_written_total", &M::marks_written, "Marks that Redis has acknowledged."},
    MetricInfo{"mark_failures_total", &M::mark_failures,
               "Reads and writes of marks that failed. While a partition's mark cannot be "
               "confirmed, nothing is read of it."},
    MetricInfo{"mark_losses_total", &M::mark_losses,
               "Marks that were not what was written last: Redis has lost data, or another writer "
               "is at work."},
    MetricInfo{"rewinds_total", &M::rewinds, "Partitions set back to a mark."},
    MetricInfo{"rewound_messages_total", &M::rewound_messages, "How far, in messages."},

    MetricInfo{"compactions_total", &M::compactions, "Records rewritten."},
    MetricInfo{"compaction_unneeded_total", &M::compaction_unneeded,
               "Records that were compact already, or gone."},
    MetricInfo{"compaction_conflicts_total", &M::compaction_conflicts,
               "Exchanges refused because the record had been rewritten; it is read again."},
    MetricInfo{"compaction_failures_total", &M::compaction_failures,
               "Compactions given up because Redis did not answer; made again after quiet_after."},
    MetricInfo{"compaction_bytes_saved_total", &M::compaction_bytes_saved,
               "How much shorter records became."},
    MetricInfo{"compaction_queued_users", &M::queued_users,
               "Recently written records that are remembered."},
    MetricInfo{"compaction_queue_overflows_total", &M::queue_overflows,
               "Written records that there was no room to remember; the sweep gets them."},
    MetricInfo{"entries_expired_total", &M::entries_expired,
               "Entries that compaction left out for their age."},
    MetricInfo{"entries_dropped_total", &M::entries_dropped,
               "Entries that compaction left out of oversized records."},
    MetricInfo{"undecodable_records_total", &M::undecodable_records,
               "Records that this version cannot read; left alone."},
    MetricInfo{"unknown_frames_total", &M::unknown_frames,
               "Frames of a newer version's kind; carried over."},

    MetricInfo{"rule_set_version", Asked::kRuleSetVersion, "The version of the rules in use."},
    MetricInfo{"rule_count", Asked::kRuleCount, "The rules in use."},
    MetricInfo{"rule_set_age_seconds", Asked::kRuleSetAge,
               "Since the rules in use were last known to be the current ones; -1 before the "
               "first."},
    MetricInfo{"rule_reloads_total", Asked::kRuleReloads, "Rule sets taken."},
    MetricInfo{"rule_reloads_refused_total", Asked::kRuleReloadsRefused,
               "Rule sets refused: invalid, empty or sharply shrunken."},
    MetricInfo{"rule_reloads_failed_total", Asked::kRuleReloadsFailed,
               "Attempts to load that got no answer."},
};

}  // namespace

std::span<const MetricInfo> metric_list() noexcept {
  return kList;
}

}  // namespace fcap::updater
