#include "updater/doctor/restart_check.h"

#include <string>

#include "kafka/topic_questions.h"
#include "redis/client.h"
#include "updater/doctor/server_checks.h"
#include "updater/options/libraries.h"
#include "updater/options/signatures.h"

namespace fcap::updater {

std::vector<ChangedFiles::File> files_read_once(const Settings& settings) {
  std::vector<ChangedFiles::File> files;
  for (const char* const secret : {"kafka.sasl_password", "postgres.password"}) {
    const auto file = settings.secret_files.find(secret);
    if (file != settings.secret_files.end()) files.push_back({secret, file->second});
  }
  for (const char* const name : {"ssl.ca.location", "ssl.certificate.location", "ssl.crl.location",
                                 "ssl.key.location", "ssl.keystore.location"}) {
    const auto file = settings.kafka.properties.find(name);
    if (file == settings.kafka.properties.end()) continue;
    files.push_back({std::string("kafka.properties ") + name, file->second});
  }
  return files;
}

Status check_restart(const SettingSources& sources) {
  const auto loaded = load_settings(sources);
  if (!loaded.ok()) return loaded.status();
  const Settings& settings = loaded.value().settings;
  // Their files may be in the middle of a change, too; they are watched elsewhere.
  if (const auto redis = redis::Client::create(redis_options(settings, {})); !redis.ok()) {
    return redis.status();
  }
  if (const auto keys = make_signature_check(settings.signatures, {}); !keys.ok()) {
    return keys.status();
  }
  const auto kafka = kafka::TopicQuestions::open(kafka_connection(settings.kafka),
                                                 settings.kafka.group_id, kKafkaAnswersWithin);
  if (!kafka.ok()) return kafka.status();
  return kafka.value()->topic(settings.kafka.topic).status();
}

}  // namespace fcap::updater
