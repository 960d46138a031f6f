// A store on a real cluster where every connection is encrypted: its own and the nodes' own.
#include <gtest/gtest.h>

#include "support/certificates.h"
#include "support/cluster_test.h"

namespace fcap {
namespace cluster_tls_redis_test {

using testing::Certificates;
using testing::ClusterLoad;
using testing::RedisCluster;
using testing::RedisServer;

TEST(ClusterOverTls, IsServedThroughAFailoverAndAMove) {
  if (!RedisServer::available() || !Certificates::available()) {
    GTEST_SKIP() << "redis-server, redis-cli or openssl is missing";
  }
  const Certificates authority("fcap test authority");
  RedisCluster cluster(authority.ca_file(), authority.issue("server", "IP:127.0.0.1"));
  RedisOptions options = testing::options_of(cluster.url());
  options.tls.ca_file = authority.ca_file();
  auto store = make_redis_store(options);
  ASSERT_TRUE(store.ok()) << store.status().text();
  ClusterLoad load(*store.value(), RedisCluster::users_in({0, 16383}, 60), 2);
  EXPECT_TRUE(load.wait_for_more(120)) << load.seen().first_failures;
  cluster.move_slots(0, 1, {0, 999});
  cluster.fail_over(2, RedisCluster::FailOver::kInOrder);
  EXPECT_TRUE(load.wait_for_more(1'000)) << load.seen().first_failures;
  load.stop();
  const ClusterLoad::Seen last = load.verify();
  EXPECT_EQ(last.failures + last.lost + last.foreign, 0U);

  const Certificates another("another authority");
  options.tls.ca_file = another.ca_file();
  EXPECT_TRUE(testing::is_refused(options, "tls.ca_file"));
}

}  // namespace cluster_tls_redis_test
}  // namespace fcap
