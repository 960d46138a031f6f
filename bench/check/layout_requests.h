#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "path/check_load.h"
#include "redis/client.h"

namespace fcap::bench {

/// A layout's requests: a number of them always in flight over one connection.
class LayoutRequests final : public Load {
 public:
  LayoutRequests(RedisConsole& console, Layout& layout, const CheckWorkload& workload,
                 std::size_t in_flight)
      : console_(console), layout_(layout), workload_(workload) {
    for (std::size_t i = 0; i < in_flight; ++i) {
      requests_.push_back(std::make_unique<OneRequest>(*this));
    }
  }

 private:
  class OneRequest final : public redis::Request {
   public:
    explicit OneRequest(LayoutRequests& load)
        : load_(load), counts_(load.workload_.campaigns.size()) {}

    void prepare() {
      question_ = {load_.workload_.user(load_.turn_++), load_.workload_.campaigns, kBenchNow};
      wire.clear();
      command_count = load_.layout_.ask(wire, question_);
      std::fill(counts_.begin(), counts_.end(), 0);
      readable_ = true;
    }
    void submit() {
      deadline = std::chrono::steady_clock::now() + kDeadline;
      load_.console_.client().submit(*this);
    }
    void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
      readable_ = load_.layout_.read(question_, index, reply, counts_) && readable_;
    }
    void on_done(redis::TransportCode code) noexcept override {
      load_.count(code == redis::TransportCode::kOk && readable_);
      if (load_.should_stop()) {
        load_.running_.fetch_sub(1);
      } else {
        prepare();
        submit();
      }
    }

   private:
    LayoutRequests& load_;
    Question question_;
    std::vector<std::uint32_t> counts_;
    bool readable_ = true;
  };

  void start() override {
    running_ = requests_.size();
    for (auto& request : requests_) request->prepare();
    for (auto& request : requests_) request->submit();
  }

  RedisConsole& console_;
  Layout& layout_;  // the I/O thread's, once answers come, like turn_
  const CheckWorkload& workload_;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<OneRequest>> requests_;
};

}  // namespace fcap::bench
