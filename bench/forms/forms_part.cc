// The part `forms`: what each way to make an impression count costs beside a plain check. The rows:
// ../README.md.
//
// Reserving asks Redis for the time, so the clock is the machine's here. Before each turn the
// records are written again: every turn begins with the same, without reservations.
#include "base/clock.h"
#include "harness/part.h"
#include "path/check_load.h"
#include "support/reserving.h"

namespace fcap::bench {
namespace {

using Candidates = std::span<const Candidate>;

class FormsPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    console_.call({"SET", "fcap:!config", testing::config_for_reserving()});
    result_.table("forms", "Checks, and what makes an impression count",
                  fmt::format("One blocking caller, {} users of 30 impressions, one slot. Medians "
                              "of {} turns.",
                              flags_.users, flags_.rounds),
                  throughput_columns({kP50, kP99}));
    measure();
    for (const std::string form : {"shared", "reserve_after_check"}) {
      ratio(form + "_p50_vs_check", form, "check", "p50_us");
      ratio(form + "_redis_cpu_vs_check", form, "check", "redis_cpu_us");
    }
  }

 private:
  struct FormCall {
    Checker& checker;
    const std::string& user;
    Candidates all;
    std::string_view id;   // of an event that nobody knows
    const Candidate& one;  // of all
  };
  using Form = bool (*)(const FormCall& to);

  void measure() {
    const auto add = [this](const char* name, const char* title, Form form) {
      compare(name, title, [this, form] { return measure_form(form); });
    };
    add("check", "check", [](const FormCall& to) {
      return to.checker.check(to.user, to.all).reason == Reason::kPassed;
    });
    add("local", "check, local note", [](const FormCall& to) {
      const CheckResult check = to.checker.check(to.user, to.all);
      const Candidate* shown = first_allowed(check, to.all);
      return shown != nullptr && to.checker.note_shown({to.user, *shown, to.id});
    });
    add("shared", "check with a shared note (a shared page)", [](const FormCall& to) {
      return to.checker.pick({Promise::kShared, to.user, to.all, {&to.id, 1}}).reason ==
             Reason::kDone;
    });
    add("reserve_after_check", "check, reserve from its record", [](const FormCall& to) {
      const CheckResult check = to.checker.check(to.user, to.all, {.keep_record = true});
      const Candidate* shown = first_allowed(check, to.all);
      return shown != nullptr &&
             to.checker.hard({HardCall::kReserve, {to.user, *shown, to.id, {}, check.token}})
                 .allowed;
    });
    add("reserve", "reserve alone", [](const FormCall& to) {
      return is_decided(to.checker.hard({HardCall::kReserve, {to.user, to.one, to.id}}));
    });
    add("record", "record", [](const FormCall& to) {
      return is_decided(to.checker.hard({HardCall::kRecord, {to.user, to.one, to.id}}));
    });
    add("reserved_page", "reserved page", [](const FormCall& to) {
      const auto picked = to.checker.pick({Promise::kReserved, to.user, to.all, {&to.id, 1}});
      return picked.reason == Reason::kDone;
    });
    take_turns();
  }

  // One user in 27,000 has seen a campaign three times within the last day.
  static bool is_decided(const HardResult& result) {
    return result.allowed || result.reason == Reason::kCapped;
  }

  static const Candidate* first_allowed(const CheckResult& check, Candidates all) {
    const auto found = std::ranges::find(check.verdicts, true, &Verdict::allowed);
    if (check.reason != Reason::kPassed || found == check.verdicts.end()) return nullptr;
    return &all[static_cast<std::size_t>(found - check.verdicts.begin())];
  }

  Numbers measure_form(Form form) {
    populate_compacted(console_, {.users = flags_.users, .now = base::wall_now()});
    const auto checker = make_checker(console_.options(), workload_, base::wall_now);
    // A Checker reads on connecting whether it may reserve.
    const Candidate candidate{"campaign-0", {}};
    if (!testing::wait_until([&] {
          return checker->hard({HardCall::kReserve, {"nobody", candidate, "x"}}).allowed;
        })) {
      throw std::runtime_error("the Checker may not reserve");
    }
    const Ask ask = [&, all = workload_.candidates()](const std::string& user) {
      const std::string id = uuid(kImpressionIds, ++events_);
      return form({*checker, user, all, id, all[events_ % all.size()]});
    };
    return BlockingCallers(workload_, {ask}).measure(redis_->pid(), flags_.seconds);
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
  std::uint64_t events_ = 0;  // the caller's
};

const Registered kForms("forms", run_part<FormsPart>);

}  // namespace
}  // namespace fcap::bench
