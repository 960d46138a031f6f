// fcap show.
#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/outside_text.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/local_time.h"
#include "cli/names.h"
#include "cli/question_lines.h"
#include "cli/record_reader.h"
#include "cli/rule_loading.h"
#include "ledger/encode.h"
#include "ledger/ids.h"
#include "rule_text/rule_words.h"
#include "rules/reservation_state.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

// A user's record, taken apart.
struct TakenRecord {
  std::string user;
  bool null_user = false;  // stands for "unknown": never recorded, and not looked up
  std::string key;
  bool found = false;
  std::size_t record_bytes = 0;
  std::size_t compacted_bytes = 0;
  std::optional<std::chrono::milliseconds> ttl;
  ledger::Ledger ledger;
  std::optional<Instant> at;
  Instant now;  // `at`, or when it was read
  std::size_t left_out = 0;
};

Names names_of_rules(const AccessSettings& access, Streams streams) {
  if (access.rules_file.empty() && access.postgres.empty() && access.snapshot_file.empty()) {
    return {};
  }
  const Result<LoadedRules> loaded = load_rules(access);
  if (loaded.ok()) return Names(*loaded.value().rules);
  streams.err << "fcap: warning: ids print as hashes: "
              << base::printable_lines(loaded.status().text()) << "\n";
  return {};
}

// Names are a kindness: without any rule source, ids print as hashes.
Names load_names(const CliSettings& settings, Streams streams) {
  Names names = names_of_rules(settings.access, streams);
  // The user need not know whether a name is a campaign's or a creative's.
  for (const std::string& name : settings.show.names) names.learn(name, name);
  return names;
}

bool is_null(const std::string& user, const AccessSettings& access) {
  const auto& ids = access.null_user_ids;
  return user.empty() || std::find(ids.begin(), ids.end(), user) != ids.end();
}

// `shown` has the user and the instant.
Status read_record(RecordReader& reader, TakenRecord& shown) {
  if (shown.user.size() > ledger::kIdBytesMax) {
    return Status::error(StatusCode::kInvalidArgument, "the user id has more than 256 bytes");
  }
  shown.key = reader.key_of(shown.user);
  const Result<std::optional<std::string>> record = reader.read(shown.user);
  if (!record.ok()) return record.status();
  shown.now = shown.at.value_or(base::wall_now());
  shown.found = record.value().has_value();
  if (!shown.found) return {};
  const auto ttl = reader.time_to_live(shown.user);
  if (!ttl.ok()) return ttl.status();
  shown.ttl = ttl.value();
  shown.record_bytes = record.value()->size();
  shown.compacted_bytes = ledger::compacted_bytes(*record.value());
  if (shown.ledger.decode(*record.value()) != ledger::DecodeCode::kOk) {
    return Status::error(
        StatusCode::kCorrupt,
        fmt::format("the record {} ({} bytes) cannot be decoded; see it with redis-cli GET",
                    shown.key, shown.record_bytes));
  }
  if (shown.at) {
    const std::size_t before = shown.ledger.size();
    shown.ledger.drop_after(*shown.at);
    shown.left_out = before - shown.ledger.size();
  }
  return {};
}

ordered_json instant_json(const std::optional<Instant>& instant) {
  return instant ? ordered_json(to_ms(*instant)) : ordered_json(nullptr);
}

ordered_json run_json(const ledger::Ledger& ledger, const ledger::Run& run, const Names& names) {
  ordered_json json;
  json["campaign"] = names.campaign(run.campaign);
  json["event_type"] = rule_text::word_of(rule_text::kEventTypeWords, run.type);
  json["entries"] = ordered_json::array();
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    const ledger::Entry entry = ledger.entry(run, i);
    json["entries"].push_back(
        {{"time", to_ms(entry.time)},
         {"creative", entry.creative == 0 ? ordered_json(nullptr)
                                          : ordered_json(names.creative(entry.creative))},
         {"fingerprint", fmt::format("{:08x}", entry.fingerprint)}});
  }
  return json;
}

std::string_view state_word(const TakenRecord& shown, const ledger::Reservation& reservation) {
  switch (rules::state_of(shown.ledger, reservation, shown.now)) {
    case rules::ReservationState::kLive:
      return "live";
    case rules::ReservationState::kConfirmed:
      return "confirmed";
    case rules::ReservationState::kReleased:
      return "released";
    case rules::ReservationState::kExpired:
      return "expired";
    case rules::ReservationState::kAhead:
      break;
  }
  return "ahead";
}

ordered_json reservations_json(const TakenRecord& shown, const Names& names) {
  ordered_json all = ordered_json::array();
  for (const ledger::Reservation& reservation : shown.ledger.reservations()) {
    const ledger::Entry& event = reservation.event;
    all.push_back({{"campaign", names.campaign(event.campaign)},
                   {"event_type", rule_text::word_of(rule_text::kEventTypeWords, event.type)},
                   {"time", to_ms(event.time)},
                   {"expires", to_ms(reservation.expires)},
                   {"released", reservation.released},
                   {"state", state_word(shown, reservation)},
                   {"creative", event.creative == 0 ? ordered_json(nullptr)
                                                    : ordered_json(names.creative(event.creative))},
                   {"fingerprint", fmt::format("{:08x}", event.fingerprint)}});
  }
  return all;
}

std::string shown_line(const TakenRecord& shown, const Names& names, const std::string& id_json) {
  const ledger::Ledger& ledger = shown.ledger;
  ordered_json json;
  if (!id_json.empty()) json["id"] = ordered_json::parse(id_json, nullptr, false);
  json["user"] = shown.user;
  json["null_user"] = shown.null_user;
  json["key"] = shown.null_user ? ordered_json(nullptr) : ordered_json(shown.key);
  json["found"] = shown.found;
  if (shown.at) {
    json["at"] = to_ms(*shown.at);
    json["as_of"] = {{"left_out", shown.left_out}, {"arrival_times", "unknown"}};
  }
  json["record_bytes"] = shown.record_bytes;
  json["compacted_bytes"] = shown.compacted_bytes;
  json["ttl_ms"] = shown.ttl ? ordered_json(shown.ttl->count()) : ordered_json(nullptr);
  json["erased_before"] = instant_json(ledger.erased_before());
  json["complete_since"] = instant_json(ledger.complete_since());
  json["unknown_frames"] = ledger.unknown_frames();
  json["entry_count"] = ledger.size();
  json["campaigns"] = ordered_json::array();
  for (const ledger::Run& run : ledger.runs()) {
    json["campaigns"].push_back(run_json(ledger, run, names));
  }
  json["reservations"] = reservations_json(shown, names);
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void print_markers(const TakenRecord& shown, const LocalTime& local, std::ostream& out) {
  const ledger::Ledger& ledger = shown.ledger;
  if (!shown.ttl) out << "  it has no expiry, which it should have: the sweep repairs that\n";
  if (ledger.erased_before()) {
    out << fmt::format("  erased: everything up to {}\n", local.text(*ledger.erased_before()));
  }
  if (ledger.complete_since()) {
    out << fmt::format("  trimmed for size: what is older than {} may be missing\n",
                       local.text(*ledger.complete_since()));
  }
  if (ledger.unknown_frames() > 0) {
    out << fmt::format("  {} of a newer version, skipped\n",
                       counted(ledger.unknown_frames(), "part", "parts"));
  }
  if (shown.at) {
    out << fmt::format("  as of {}: {} left out. When an entry arrived is not recorded.\n",
                       local.text(*shown.at),
                       counted(shown.left_out, "later entry was", "later entries were"));
  }
}

void print_reservations(const TakenRecord& shown, const Names& names, const LocalTime& local,
                        std::ostream& out) {
  for (const ledger::Reservation& reservation : shown.ledger.reservations()) {
    const ledger::Entry& event = reservation.event;
    out << fmt::format("  {} {}: reserved {}, expires {}, {}  {:08x}",
                       base::printable(names.campaign(event.campaign)),
                       rule_text::word_of(rule_text::kEventTypeWords, event.type),
                       local.text(event.time), local.text(reservation.expires),
                       state_word(shown, reservation), event.fingerprint);
    if (event.creative != 0)
      out << "  creative " << base::printable(names.creative(event.creative));
    out << "\n";
  }
}

void print_text(const TakenRecord& shown, const Names& names, const LocalTime& local,
                std::ostream& out) {
  if (shown.null_user) {
    out << fmt::format("user {}: null user id, never recorded\n",
                       shown.user.empty() ? "(none)" : shown.user);
    return;
  }
  out << fmt::format("user {}, key {}\n", base::printable(shown.user), base::printable(shown.key));
  if (!shown.found) {
    out << "  nothing is recorded\n";
    return;
  }
  const ledger::Ledger& ledger = shown.ledger;
  out << fmt::format("  {} in {}, {} of them compacted{}\n",
                     counted(ledger.size(), "entry", "entries"),
                     counted(shown.record_bytes, "byte", "bytes"), shown.compacted_bytes,
                     shown.ttl ? ", expires in " + base::spoken_length(*shown.ttl) : std::string());
  print_markers(shown, local, out);
  for (const ledger::Run& run : ledger.runs()) {
    out << fmt::format("  {} {}: {}\n", base::printable(names.campaign(run.campaign)),
                       rule_text::word_of(rule_text::kEventTypeWords, run.type),
                       run.end - run.begin);
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const ledger::Entry entry = ledger.entry(run, i);
      out << fmt::format("    {:<{}}  {:08x}", local.text(entry.time), local.width(),
                         entry.fingerprint);
      if (entry.creative != 0)
        out << "  creative " << base::printable(names.creative(entry.creative));
      out << "\n";
    }
  }
  print_reservations(shown, names, local, out);
}

// Opened when the first user is looked up: null ids need no server.
class Records {
 public:
  Records(const AccessSettings& access, Streams streams) : access_(access), streams_(streams) {}

  Status read(TakenRecord& shown) {
    shown.null_user = is_null(shown.user, access_);
    if (shown.null_user) return {};
    if (reader_ == nullptr) {
      Result<std::unique_ptr<RecordReader>> opened = RecordReader::open(access_);
      if (!opened.ok()) return opened.status();
      reader_ = std::move(opened).value();
      if (const std::string warning = reader_->config_warning(access_); !warning.empty()) {
        streams_.err << "fcap: warning: " << warning;
      }
    }
    return read_record(*reader_, shown);
  }

 private:
  const AccessSettings& access_;
  Streams streams_;
  std::unique_ptr<RecordReader> reader_;
};

int show_lines(const CliSettings& settings, Records& records, Streams streams) {
  std::optional<Names> names;
  const auto answer = [&](const CheckQuestion& question) -> Result<std::string> {
    TakenRecord shown;
    shown.user = question.user;
    shown.at = question.at;
    if (Status status = records.read(shown); !status.ok()) return status;
    if (!names) names = load_names(settings, streams);
    return shown_line(shown, *names, question.id_json);
  };
  return answer_lines(settings.show.input, Asks::kUserOnly, answer, streams);
}

}  // namespace

int run_show(const CliSettings& settings, Streams streams) {
  const Result<LocalTime> local = LocalTime::of(settings.time_zone);
  if (!local.ok()) return fail(streams, local.status());
  Records records(settings.access, streams);
  if (!settings.show.has_user) return show_lines(settings, records, streams);
  TakenRecord shown;
  shown.user = settings.show.user;
  if (!settings.at.empty()) {
    const Result<Instant> at = parse_at(settings.at, "--at");
    if (!at.ok()) return fail(streams, at.status());
    shown.at = at.value();
    const std::string warning = seconds_warning(settings.at, "--at");
    if (!warning.empty()) streams.err << "fcap: warning: " << warning << "\n";
  }
  if (const Status status = records.read(shown); !status.ok()) return fail(streams, status);
  const Names names = shown.found ? load_names(settings, streams) : Names();
  if (settings.json) {
    streams.out << shown_line(shown, names, {});
  } else {
    print_text(shown, names, local.value(), streams.out);
  }
  return kExitOk;
}

}  // namespace fcap::cli
