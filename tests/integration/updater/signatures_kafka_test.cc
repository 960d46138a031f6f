// Signed ids, from a key file to Redis and the dead-letter topic.
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <fcap/signed_id.h>

#include "base/time_text.h"
#include "support/updater_pipeline.h"
#include "tests/support/temporary_directory.h"
#include "updater/options/signatures.h"

namespace fcap {
namespace signatures_kafka_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::MadeEvent;
using testing::RunningUpdater;
using testing::wait_until;

struct TestKey {
  std::string id;
  char digit = 'a';  // of which the secret consists
  Instant from = {};
  std::optional<Instant> until = {};
};

std::string json_of(const std::vector<TestKey>& keys) {
  std::string list;
  for (const TestKey& key : keys) {
    list += list.empty() ? "" : ",";
    list += R"({"id": ")" + key.id + R"(", "secret": ")" + std::string(64, key.digit) +
            R"(", "from": ")" + base::format_instant(key.from) + '"';
    if (key.until) list += R"(, "until": ")" + base::format_instant(*key.until) + '"';
    list += "}";
  }
  return R"({"keys": [)" + list + "]}";
}

std::string signed_with(const TestKey& key, const MadeEvent& event) {
  const auto keys = SigningKeys::parse(json_of({key}));
  EXPECT_TRUE(keys.ok()) << keys.status().text();
  const auto id =
      keys.value()->sign({.user_id = event.user_id, .campaign_id = event.campaign_id}, event.time);
  EXPECT_TRUE(id.ok()) << id.status().text();
  return id.value();
}

class UpdaterSignatures : public testing::UpdaterPipeline {
 protected:
  void write_keys(const std::vector<TestKey>& keys) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << json_of(keys);
    std::filesystem::rename(next, path_);
  }

  std::unique_ptr<RunningUpdater> start_verifying() {
    updater::SignatureSettings settings;
    settings.key_file = path_;
    auto check = updater::make_signature_check(settings, [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      log_.append(text).push_back('\n');
    });
    EXPECT_TRUE(check.ok()) << check.status().text();
    updater::UpdaterOptions options;
    options.intake.signatures = std::move(check).value();
    return start_updater(options);
  }

  void produce_signed(const TestKey& key, int count) {
    for (int i = 0; i < count; ++i) {
      MadeEvent event = maker_.next();
      event.event_id = signed_with(key, event);
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
      ++sent_;
    }
  }

  // What must become a dead letter.
  void produce_wrong(const MadeEvent& event) {
    producer_->send(topic_, event.user_id, event.json());
    ++sent_;
  }
  MadeEvent event_at(Instant time) {
    MadeEvent event = maker_.next();
    event.time = time;
    return event;
  }

  // One of each kind.
  void produce_one_of_each_mistake(const TestKey& key, const TestKey& ended) {
    MadeEvent event = event_at(now_);
    produce_wrong(event);
    event.event_id = signed_with(key, event).substr(0, 36);
    produce_wrong(event);
    event.event_id = signed_with({.id = "nobodys", .digit = key.digit}, event);
    produce_wrong(event);
    event.event_id = signed_with({.id = key.id, .digit = 'f'}, event);
    produce_wrong(event);
    event.event_id = signed_with({.id = ended.id, .digit = ended.digit}, event);
    produce_wrong(event);

    event = event_at(now_);
    event.event_id = signed_with(key, event);
    MadeEvent foreign = event;
    foreign.user_id += "-other";
    produce_wrong(foreign);
    foreign = event;
    foreign.campaign_id += "-other";
    produce_wrong(foreign);

    event = event_at(now_ - hours{30});
    event.event_id = signed_with(key, event);
    event.time += hours{24} + milliseconds{1};
    produce_wrong(event);
  }

  std::map<std::string, int> letters_by_reason() {
    std::map<std::string, int> reasons;
    for (const auto& letter : kafka->read_all(topic_ + ".dead", 1)) {
      ++reasons[letter.headers.at("fcap.reason")];
    }
    return reasons;
  }

  bool logged(const std::string& text) {
    return wait_until(
        [&] {
          const std::lock_guard lock(mutex_);
          return log_.find(text) != std::string::npos;
        },
        kPatience);
  }

  const Instant now_ = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  std::int64_t sent_ = 0;
  TemporaryDirectory directory_;
  std::string path_ = directory_.file("keys.json");
  std::mutex mutex_;
  std::string log_;  // of the key file; guarded by mutex_
};

TEST_F(UpdaterSignatures, WhatIsNotGenuineIsADeadLetterWithItsReason) {
  const TestKey key{.id = "k"};
  const TestKey ended{.id = "ended", .digit = 'b', .until = now_ - hours{240}};
  write_keys({key, ended});
  produce_signed(key, 500);
  produce_one_of_each_mistake(key, ended);
  produce_signed(key, 500);
  auto updater = start_verifying();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return committed() == sent_; }, kPatience)) << updater->log();
  const std::map<std::string, int> expected{
      {"signature_missing", 1},         {"signature_malformed", 1}, {"signature_unknown_key", 1},
      {"signature_forged", 1},          {"signature_foreign", 2},   {"signature_expired", 1},
      {"signature_key_not_in_force", 1}};
  EXPECT_EQ(letters_by_reason(), expected);
  const auto counted = [&](events::Rejection reason) {
    return updater->metrics().rejected.at(static_cast<std::size_t>(reason)).value();
  };
  EXPECT_EQ(counted(events::Rejection::kSignatureForged), 1U);
  EXPECT_EQ(counted(events::Rejection::kSignatureForeign), 2U);
  EXPECT_EQ(counted(events::Rejection::kSignatureExpired), 1U);
}

TEST_F(UpdaterSignatures, ARotationLosesNothingNorDoesARecoveryAfterIt) {
  const TestKey former{.id = "former"};
  write_keys({former});
  auto updater = start_verifying();
  produce_signed(former, 500);
  expect_all_counted(*updater);

  const TestKey retired{.id = "former", .until = now_ + hours{1}};
  const TestKey next{.id = "next", .digit = 'c'};
  write_keys({retired, next});
  ASSERT_TRUE(logged("was read again: former, next"));
  produce_signed(next, 500);
  produce_signed(former, 100);  // by an ad server that has not read the new key yet
  expect_all_counted(*updater);

  updater->stop();
  redis_->command({"FLUSHALL"});
  updater = start_verifying();
  expect_all_counted(*updater);
  EXPECT_EQ(letters_by_reason(), (std::map<std::string, int>{}));
}

}  // namespace signatures_kafka_test
}  // namespace fcap
