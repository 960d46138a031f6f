// fcap audit over a real topic that holds everything which is rightly not counted, and what is
// lost.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/whole_path_test.h"

namespace fcap {
namespace audit_path_test {

using nlohmann::json;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Finished;
using ::testing::HasSubstr;

class AuditPath : public testing::WholePathTest {
 protected:
  static Finished fcap(std::vector<std::string> words) {
    words.insert(words.end(), {"--brokers", servers->kafka.brokers(), "--timeout", "30s"});
    if (std::find(words.begin(), words.end(), "--topic") == words.end()) {
      words.insert(words.end(), {"--topic", servers->topic});
    }
    return servers->fcap(words);
  }

  // Audits the events of the user "both".
  static Finished audit(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"audit", "--json", "--user-prefix", "both", "--propagation-ms", "0"});
    return fcap(std::move(words));
  }

  // Where the topic ends now, as --from-offsets takes it: the tests share it.
  static std::string ends() {
    std::string list;
    for (int partition = 0; partition < testing::WholePath::kPartitions; ++partition) {
      list += (partition > 0 ? "," : "") +
              std::to_string(servers->kafka.end(servers->topic, partition));
    }
    return list;
  }

  const Instant now_ = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
};

TEST_F(AuditPath, WhatIsRightlyNotCountedIsNotLostAndWhatIsLostIsFound) {
  const std::string from = ends();
  for (const char* user : {"u1", "u2", "u3"}) {
    servers->produce({user, "c1", std::string("a-") + user, now_ - hours{2}});
    servers->produce({user, "c1", std::string("b-") + user, now_ - hours{1}});
  }
  servers->produce({"u1", "c1", "a-u1", now_ - hours{2}});
  servers->produce({"u1", "c1", "old", now_ - days{90}});
  servers->produce({"u1", "c1", "future", now_ + hours{1}});
  servers->produce({"", "c1", "nobody", now_});
  servers->produce({"u9\",\"user_id\":7,\"x\":\"", "c1", "wrong", now_});
  ASSERT_TRUE(servers->drain());
  const Finished erased = fcap({"erase", "u2", "--yes"});
  ASSERT_EQ(erased.exit_code, 0) << erased.errors;
  ASSERT_TRUE(testing::wait_until([] {
    return json::parse(servers->fcap({"show", "u2", "--json"}).output)["entry_count"] == 0;
  }));

  const Finished clean = fcap({"audit", "--json", "--propagation-ms", "0", "--from-offsets", from});
  EXPECT_EQ(clean.exit_code, 0) << clean.output << clean.errors;
  const json report = json::parse(clean.output);
  const json expected = {{"messages", 12}, {"rejected", 1},  {"null_user", 1},    {"erasures", 1},
                         {"produced", 8},  {"repeated", 1},  {"repeated_ids", 0}, {"counted", 4},
                         {"expired", 1},   {"in_future", 1}, {"erased", 2},       {"lost", 0},
                         {"double", 0}};
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(report[name], value) << name;

  ASSERT_EQ(servers->redis.number({"DEL", "fcap:{u3}"}), 1);
  const Finished lossy = fcap({"audit", "--propagation-ms", "0", "--from-offsets", from});
  EXPECT_EQ(lossy.exit_code, 1);
  EXPECT_THAT(lossy.output, HasSubstr("lost      2\n"));
}

TEST_F(AuditPath, AnAuditOfNothingIsAnError) {
  servers->produce({"alone", "c1", "x", now_ - hours{3}});
  ASSERT_TRUE(servers->drain());
  const Finished nobody = fcap({"audit", "--user-prefix", "zzz"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("nothing was compared"));
  EXPECT_THAT(nobody.errors, HasSubstr("\"zzz\" (--user-prefix)"));
  const Finished empty = fcap({"audit", "--to-offsets", "0,0,0"});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.errors, HasSubstr("the range holds no messages"));
  const Finished behind = fcap({"audit", "--from-offsets", "0,99999999,0"});
  EXPECT_EQ(behind.exit_code, 2);
  EXPECT_THAT(behind.errors, HasSubstr("beyond the end of partition 1"));
}

TEST_F(AuditPath, SeveralTopicsThatAreCountedInOneRedisAreComparedTogether) {
  const std::string west = servers->topic + ".west";
  servers->kafka.create_topic(west, 1);
  servers->produce({"both", "c1", "here", now_ - hours{1}});
  ASSERT_TRUE(servers->drain());
  servers->producer.send(west, "both", testing::to_json({"both", "c1", "there", now_ - hours{2}}));
  servers->producer.flush();

  const Finished here = audit({"--also-topic", west});
  EXPECT_EQ(here.exit_code, 1) << here.errors;
  EXPECT_EQ(json::parse(here.output)["produced"], 2);
  EXPECT_EQ(json::parse(here.output)["lost"], 1) << "nobody counts the copy";
  const Finished alone = audit({"--topic", west});
  EXPECT_EQ(json::parse(alone.output)["double"], 1);
  const Finished range = audit({"--also-topic", west, "--to-offsets", "1,1,1"});
  EXPECT_EQ(range.exit_code, 2) << range.errors;
}

}  // namespace audit_path_test
}  // namespace fcap
