// The same host on Asio: each question is a coroutine that awaits its answer. fcap/asio.h is all it
// takes.
//
//     printf 'u123 c1 c2\n' | fcap-example-asio [REDIS_HOST:PORT]

#include <cstdio>
#include <string>
#include <vector>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <unistd.h>

#include <fcap/asio.h>

#include "questions.h"

namespace {

using LoopChecker = fcap::AsioChecker<asio::io_context::executor_type>;

asio::awaitable<void> answer(LoopChecker& checker, InputQuestion question) {
  const std::vector<fcap::Candidate> candidates = question.candidates();
  const fcap::CheckResult result =
      co_await checker.check(question.user, candidates, asio::use_awaitable);
  std::fputs(answer_line(question, result).c_str(), stdout);
}

asio::awaitable<void> read_questions(LoopChecker& checker) {
  asio::posix::stream_descriptor input(checker.get_executor(), ::dup(STDIN_FILENO));
  std::string read;
  for (;;) {
    asio::error_code error;
    const std::size_t length = co_await asio::async_read_until(
        input, asio::dynamic_buffer(read), '\n', asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    asio::co_spawn(checker.get_executor(),
                   answer(checker, InputQuestion::parse(read.substr(0, length))), asio::detached);
    read.erase(0, length);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto checker = make_checker(argc > 1 ? argv[1] : nullptr);
  if (checker == nullptr) return 1;
  asio::io_context loop(1);
  LoopChecker on_loop(loop.get_executor(), *checker);
  asio::co_spawn(loop, read_questions(on_loop), asio::detached);
  loop.run();
  return 0;
}
