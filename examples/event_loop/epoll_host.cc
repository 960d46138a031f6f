// A host with one epoll loop. It reads questions from standard input, one per line: a user and the
// campaigns to ask about. It starts each check without waiting for it, and prints each answer when
// it arrives.
//
//     printf 'u123 c1 c2\n' | fcap-example-epoll [REDIS_HOST:PORT]
//
// Answers arrive on a thread of fcap's. The callback puts them into a mailbox and wakes the loop
// through an eventfd, so that all of the host's own work stays on its own thread.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <fcap/checker.h>

#include "questions.h"

namespace {

struct InputAnswer {
  InputQuestion question;
  fcap::CheckResult result;
};

class Mailbox {
 public:
  Mailbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Mailbox() { ::close(wake_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  [[nodiscard]] int fd() const { return wake_; }

  // From any thread.
  void put(InputAnswer answer) {
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(answer));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  }

  // On the loop's thread.
  std::vector<InputAnswer> take_all() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(wake_, &count, sizeof count);
    const std::lock_guard lock(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  int wake_;
  std::mutex mutex_;
  std::vector<InputAnswer> answers_;
};

class Host {
 public:
  explicit Host(fcap::Checker& checker, Mailbox& mailbox) : checker_(checker), mailbox_(mailbox) {}

  // Starts a check for each whole line. False: the input has ended.
  bool read_questions() {
    char bytes[4096];
    const auto count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) return false;
    input_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = input_.find('\n')) != std::string::npos;
         input_.erase(0, end + 1)) {
      ask(InputQuestion::parse(input_.substr(0, end)));
    }
    return true;
  }

  void print_answers() {
    for (const InputAnswer& answer : mailbox_.take_all()) {
      std::fputs(answer_line(answer.question, answer.result).c_str(), stdout);
      --pending_;
    }
  }

  [[nodiscard]] std::size_t pending() const { return pending_; }

 private:
  void ask(InputQuestion question) {
    ++pending_;
    const std::vector<fcap::Candidate> candidates = question.candidates();
    // The Checker copies the user and the candidates, so that the question may move into the
    // callback.
    const std::string user = question.user;
    checker_.check_async(user, candidates, {},
                         [this, question = std::move(question)](fcap::CheckResult result) mutable {
                           mailbox_.put({std::move(question), std::move(result)});
                         });
  }

  fcap::Checker& checker_;
  Mailbox& mailbox_;
  std::string input_;
  std::size_t pending_ = 0;
};

void watch(int loop, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) != 0)
    std::perror("epoll_ctl (standard input must be a pipe or a terminal)");
}

}  // namespace

int main(int argc, char** argv) {
  Mailbox mailbox;  // outlives the Checker, whose destructor still answers what is pending
  const auto checker = make_checker(argc > 1 ? argv[1] : nullptr);
  if (checker == nullptr) return 1;
  Host host(*checker, mailbox);
  const int loop = ::epoll_create1(EPOLL_CLOEXEC);
  watch(loop, STDIN_FILENO);
  watch(loop, mailbox.fd());
  bool reading = true;
  while (reading || host.pending() > 0) {
    epoll_event events[2];
    const int count = ::epoll_wait(loop, events, 2, -1);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == mailbox.fd()) {
        host.print_answers();
      } else if (!host.read_questions()) {
        reading = false;
        ::epoll_ctl(loop, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
      }
    }
  }
  ::close(loop);
  return 0;
}
