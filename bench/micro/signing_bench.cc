// Signed impression ids: what a server pays per id, and the updater per event.
//
// Workloads: signing; verifying a genuine id, a forged one, and one that is not signed; four keys.
#include <benchmark/benchmark.h>

#include <fcap/signed_id.h>

namespace fcap {
namespace {

constexpr Instant kServed = instant_from_ms(1'700'000'000'000);
constexpr SignedImpression kShown{.user_id = "0f8fad5b-d9cb-469f-a165-70867728950e",
                                  .campaign_id = "campaign-123456",
                                  .creative_id = "creative-42"};

std::shared_ptr<const SigningKeys> make_keys(char secret) {
  std::vector<SigningKey> keys;
  for (const char* id : {"2026a", "2026b", "2026c", "2026d"}) {
    keys.push_back({.id = id, .secret = std::string(32, secret), .from = {}});
  }
  auto made = SigningKeys::create(std::move(keys));
  if (!made.ok()) std::abort();
  return std::move(made).value();
}

std::string signed_with(char secret) {
  return make_keys(secret)->sign(kShown, kServed).value();
}

void BM_Sign(benchmark::State& state) {
  const auto keys = make_keys('s');
  for (auto _ : state) benchmark::DoNotOptimize(keys->sign(kShown, kServed));
}
BENCHMARK(BM_Sign);

void BM(benchmark::State& state, const std::string& id, SignatureVerdict expected) {
  const auto keys = make_keys('s');
  for (auto _ : state) {
    if (keys->verify(id, kShown, kServed) != expected) std::abort();
  }
}
BENCHMARK_CAPTURE(BM, VerifyGenuine, signed_with('s'), SignatureVerdict::kValid);
BENCHMARK_CAPTURE(BM, VerifyForged, signed_with('x'), SignatureVerdict::kForged);
BENCHMARK_CAPTURE(BM, VerifyNotSigned, std::string(kShown.user_id), SignatureVerdict::kNotSigned);

}  // namespace
}  // namespace fcap
