#include <iostream>

#include <unistd.h>

#include "cli/commands.h"
#include "kafka/kafka_client.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  const int exit_code =
      fcap::cli::run(argc, argv, {.in = std::cin, .out = std::cout, .err = std::cerr});
  if (fcap::kafka::KafkaClient::is_left_behind()) {
    std::cout.flush();
    std::cerr.flush();
    _exit(exit_code);
  }
  return exit_code;
}
