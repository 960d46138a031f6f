#include "rule_text/snapshot_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fcap::rule_text {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
// Far above any id or zone.
constexpr std::size_t kTextBytesMax = 0xFFFF;
constexpr std::size_t kTextLengthBytes = 2;
constexpr std::size_t kCountBytes = 4;
constexpr std::size_t kLimitBytes = 4;
constexpr std::size_t kInstantBytes = 8;

// The smallest record there can be, so that no count makes more room than its bytes are worth.
constexpr std::size_t kRuleBytesMin = 2 + 2 * kTextLengthBytes;
constexpr std::size_t kCampaignBytesMin = 2 * kTextLengthBytes + 1 + kCountBytes;

enum RuleFlag : unsigned {
  kHasLimit = 1,
  kHasSegment = 2,
  kHasStart = 4,
  kHasEnd = 8,
  kIsShadow = 16,
  kIsHard = 32,
  kAllRuleFlags = 63,
};
constexpr unsigned kTypeShift = 3;
constexpr unsigned kWindowShift = 5;
constexpr unsigned kWeekStartShift = 2;
constexpr unsigned kDaysOfAWeek = 7;

template <typename T>
constexpr unsigned code(T value) {
  return static_cast<unsigned>(value);
}

unsigned flags_of(const Rule& rule) {
  return (rule.limit ? kHasLimit : 0U) | (rule.segment ? kHasSegment : 0U) |
         (rule.start ? kHasStart : 0U) | (rule.end ? kHasEnd : 0U) |
         (rule.mode == Rule::Mode::kShadow ? kIsShadow : 0U) |
         (rule.enforcement == Rule::Enforcement::kHard ? kIsHard : 0U);
}

bool has_length(Window::Kind kind) {
  return kind == Window::Kind::kSliding || kind == Window::Kind::kFixed;
}

void write_window(const Window& window, SnapshotOutput& output) {
  if (has_length(window.kind)) {
    output.number(static_cast<std::uint64_t>(window.length.count()), kInstantBytes);
  } else if (window.kind == Window::Kind::kCalendar) {
    // Units other than weeks have no use for the day.
    const bool has_day = window.unit == CalendarUnit::kWeek && window.week_start.ok();
    const auto day = has_day ? window.week_start : std::chrono::Monday;
    output.byte(code(window.unit) | day.c_encoding() << kWeekStartShift);
    output.text(window.time_zone);
  }
}

void write_rule(const Rule& rule, SnapshotOutput& output) {
  output.byte(code(rule.scope) | code(rule.event_type) << kTypeShift |
              code(rule.window.kind) << kWindowShift);
  output.byte(flags_of(rule));
  output.text(rule.id);
  output.text(rule.target);
  if (rule.limit) output.number(*rule.limit, kLimitBytes);
  write_window(rule.window, output);
  if (rule.segment) output.text(*rule.segment);
  if (rule.start) output.number(static_cast<std::uint64_t>(to_ms(*rule.start)), kInstantBytes);
  if (rule.end) output.number(static_cast<std::uint64_t>(to_ms(*rule.end)), kInstantBytes);
  output.end_of_record();
}

void write_campaign(const Campaign& campaign, SnapshotOutput& output) {
  output.text(campaign.id);
  output.text(campaign.advertiser_id);
  output.byte(campaign.deleted ? 1 : 0);
  output.number(campaign.groups.size(), kCountBytes);
  for (const std::string& group : campaign.groups) output.text(group);
  output.end_of_record();
}

template <typename T>
void read_code(unsigned value, T last, T& into, SnapshotInput& input) {
  if (value > code(last)) return input.mark_malformed();
  into = static_cast<T>(value);
}

Instant read_instant(SnapshotInput& input) {
  return instant_from_ms(static_cast<std::int64_t>(input.number(kInstantBytes)));
}

void read_window(SnapshotInput& input, Window& window) {
  if (has_length(window.kind)) {
    window.length =
        std::chrono::milliseconds{static_cast<std::int64_t>(input.number(kInstantBytes))};
  } else if (window.kind == Window::Kind::kCalendar) {
    const unsigned packed = input.byte();
    window.unit = static_cast<CalendarUnit>(packed & code(CalendarUnit::kMonth));
    const unsigned day = packed >> kWeekStartShift;
    if (day >= kDaysOfAWeek) return input.mark_malformed();
    window.week_start = std::chrono::weekday{day};
    window.time_zone = input.text();
  }
}

void read_rule(SnapshotInput& input, Rule& rule) {
  const unsigned packed = input.byte();
  read_code(packed & 7U, Scope::kUser, rule.scope, input);
  rule.event_type = static_cast<EventType>(packed >> kTypeShift & code(EventType::kConversion));
  read_code(packed >> kWindowShift, Window::Kind::kLifetime, rule.window.kind, input);
  const unsigned flags = input.byte();
  if (flags > kAllRuleFlags) input.mark_malformed();
  rule.id = input.text();
  rule.target = input.text();
  if ((flags & kHasLimit) != 0) {
    rule.limit = static_cast<std::uint32_t>(input.number(kLimitBytes));
  }
  read_window(input, rule.window);
  if ((flags & kHasSegment) != 0) rule.segment = input.text();
  if ((flags & kHasStart) != 0) rule.start = read_instant(input);
  if ((flags & kHasEnd) != 0) rule.end = read_instant(input);
  if ((flags & kIsShadow) != 0) rule.mode = Rule::Mode::kShadow;
  if ((flags & kIsHard) != 0) rule.enforcement = Rule::Enforcement::kHard;
}

void read_campaign(SnapshotInput& input, Campaign& campaign) {
  campaign.id = input.text();
  campaign.advertiser_id = input.text();
  const unsigned deleted = input.byte();
  if (deleted > 1) input.mark_malformed();
  campaign.deleted = deleted == 1;
  const std::uint64_t groups = input.number(kCountBytes);
  if (groups > input.left() / kTextLengthBytes) return input.mark_malformed();
  campaign.groups.resize(static_cast<std::size_t>(groups));
  for (std::string& group : campaign.groups) group = input.text();
}

// How many items follow, each of at least `bytes_min`; more than there can be: malformed.
std::size_t read_count(SnapshotInput& input, std::size_t bytes_min) {
  const std::uint64_t count = input.number(kCountBytes);
  if (count <= input.left() / bytes_min) return static_cast<std::size_t>(count);
  input.mark_malformed();
  return 0;
}

template <typename Item, typename Read>
void read_items(SnapshotInput& input, std::size_t count, rules::SpecSink& sink, Read read) {
  for (std::size_t i = 0; i < count && input.ok(); ++i) {
    Item item;
    read(input, item);
    sink.add(std::move(item));
  }
}

}  // namespace

SnapshotOutput::SnapshotOutput(TakePiece take_piece) : take_piece_(std::move(take_piece)) {
  pending_.reserve(kPieceBytes + kPieceBytes / 4);
}

void SnapshotOutput::number(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) byte(static_cast<unsigned>(value >> (8 * i) & 0xFFU));
}

void SnapshotOutput::text(std::string_view value) {
  value = value.substr(0, kTextBytesMax);
  number(value.size(), kTextLengthBytes);
  pending_.append(value);
}

void SnapshotOutput::end_of_record() {
  if (pending_.size() >= kPieceBytes) flush();
}

void SnapshotOutput::flush() {
  bytes_ += pending_.size();
  hash_.add(pending_);
  failed_ = failed_ || !take_piece_(pending_);
  pending_.clear();
}

SnapshotInput::SnapshotInput(std::uint64_t bytes, GivePiece give_piece)
    : give_piece_(std::move(give_piece)),
      unread_(bytes),
      buffer_(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPieceBytes)), '\0') {}

bool SnapshotInput::refill(std::size_t bytes) {
  if (!ok_ || bytes > left() || bytes > buffer_.size()) {
    ok_ = false;
    return false;
  }
  std::memmove(buffer_.data(), buffer_.data() + at_, buffered());
  end_ -= at_;
  at_ = 0;
  while (unread_ > 0 && end_ < buffer_.size()) {
    const auto room =
        static_cast<std::size_t>(std::min<std::uint64_t>(unread_, buffer_.size() - end_));
    const std::size_t got = give_piece_(buffer_.data() + end_, room);
    if (got == 0) break;
    hash_.add({buffer_.data() + end_, got});
    end_ += got;
    unread_ -= got;
  }
  ok_ = buffered() >= bytes;
  return ok_;
}

unsigned SnapshotInput::byte() {
  if (!need(1)) return 0;
  return static_cast<unsigned char>(buffer_[at_++]);
}

std::uint64_t SnapshotInput::number(std::size_t bytes) {
  if (!need(bytes)) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(buffer_[at_ + i])} << (8 * i);
  }
  at_ += bytes;
  return value;
}

std::string SnapshotInput::text() {
  const auto length = static_cast<std::size_t>(number(kTextLengthBytes));
  if (!need(length)) return {};
  std::string text(buffer_, at_, length);
  at_ += length;
  return text;
}

std::uint64_t SnapshotInput::drain_and_hash() {
  at_ = end_ = 0;
  while (unread_ > 0) {
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(unread_, buffer_.size()));
    const std::size_t got = give_piece_(buffer_.data(), room);
    if (got == 0) break;
    hash_.add({buffer_.data(), got});
    unread_ -= got;
  }
  return hash_.value();
}

void write_rules(const SnapshotView& rules, SnapshotOutput& output) {
  const base::TableVersion& version = rules.version;
  output.number(version.version, sizeof version.version);
  output.text(version.changed_at);
  output.number(version.accepted_version, sizeof version.accepted_version);
  output.number(version.rows_left_out, sizeof version.rows_left_out);
  output.number(rules.rules.size(), kCountBytes);
  for (const Rule* rule : rules.rules) write_rule(*rule, output);
  output.number(rules.campaigns.size(), kCountBytes);
  for (const Campaign* campaign : rules.campaigns) write_campaign(*campaign, output);
  output.flush();
}

bool read_rules(SnapshotInput& input, base::TableVersion& version, rules::SpecSink& sink) {
  version.version = input.number(sizeof version.version);
  version.changed_at = input.text();
  version.accepted_version = input.number(sizeof version.accepted_version);
  version.rows_left_out = input.number(sizeof version.rows_left_out);
  const std::size_t rules = read_count(input, kRuleBytesMin);
  sink.expect_rules(rules);
  read_items<Rule>(input, rules, sink, read_rule);
  const std::size_t campaigns = read_count(input, kCampaignBytesMin);
  sink.expect_campaigns(campaigns);
  read_items<Campaign>(input, campaigns, sink, read_campaign);
  return input.ok() && input.left() == 0;
}

}  // namespace fcap::rule_text
