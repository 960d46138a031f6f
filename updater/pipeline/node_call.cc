#include "updater/pipeline/node_call.h"

#include <utility>

#include "redis/command.h"

namespace fcap::updater {

std::shared_ptr<NodeCall> NodeCall::make() {
  return std::make_shared<NodeCall>();
}

void NodeCall::add(const std::vector<std::string_view>& words) {
  redis::append_word_count(wire, words.size());
  for (const std::string_view word : words) redis::append_word(wire, word);
  ++commands_;
}

void NodeCall::send(ShardPort& shards, std::uint16_t number,
                    std::optional<std::uint64_t> connections, std::chrono::milliseconds within) {
  command_count = commands_;
  only_node = number;
  epoch = connections;
  patient = true;
  deadline = std::chrono::steady_clock::now() + within;
  answers_.resize(commands_);
  self_ = shared_from_this();
  shards.submit(*this);
}

bool NodeCall::answered() const noexcept {
  return code_ == redis::TransportCode::kOk;
}

void NodeCall::on_reply(std::uint32_t index, const redis::Reply& reply) noexcept {
  NodeAnswer& answer = answers_[index];
  answer.kind = reply.kind;
  answer.integer = reply.integer;
  answer.text.assign(reply.text);
  for (const redis::Reply& element : reply.elements) {
    const bool there = element.kind == redis::Reply::Kind::kString;
    answer.elements.push_back(there ? std::optional<std::string>(element.text) : std::nullopt);
  }
}

void NodeCall::on_done(redis::TransportCode code) noexcept {
  const std::shared_ptr<NodeCall> self = std::move(self_);
  code_ = code;
  ended_.store(true, std::memory_order_release);
}

}  // namespace fcap::updater
