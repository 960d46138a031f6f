// Stands between a client and Redis and writes down what the client sends, byte for byte, for
// redis_limit to send again. Serves one connection, until either side closes it. Prints the port it
// listens on.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <sys/socket.h>

#include "updater/socket.h"

namespace {

using fcap::bench::Socket;

int serve(int redis_port, const std::string& file) {
  const Socket listener = Socket::listen();
  std::printf("%d\n", listener.port());
  std::fflush(stdout);
  const Socket client = listener.accept();
  const Socket redis = Socket::connect(redis_port);
  std::thread answers([&] {
    std::string bytes;
    for (;;) {
      redis.receive(bytes);
      if (bytes.empty()) break;
      client.send(bytes);
    }
  });
  std::ofstream out(file, std::ios::binary);
  std::string bytes;
  for (;;) {
    client.receive(bytes);
    if (bytes.empty()) break;
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    redis.send(bytes);
  }
  ::shutdown(redis.fd(), SHUT_RDWR);
  answers.join();
  out.close();
  return out.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int redis_port = 6379;
  std::string file;
  CLI::App app("Writes down what a client sends to Redis.");
  app.add_option("--redis-port", redis_port, "Redis' port")->capture_default_str();
  app.add_option("--out", file, "Where to write it")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return serve(redis_port, file);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "redis_tee: %s\n", failure.what());
    return 1;
  }
}
